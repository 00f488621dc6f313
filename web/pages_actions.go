package web

import (
	"net/http"
	"strconv"

	"agentrl/internal/experiment"
	"agentrl/internal/store"
)

// postSignal asks a run to stop or to be cancelled, and goes back to it.
func (s *Server) postSignal(sig experiment.Signal, done string) handler {
	return func(r *request) error {
		id, err := r.ID("id")
		if err != nil {
			return err
		}
		return s.afterAction(r, id, s.signalRun(r, id, sig), done)
	}
}

// postResume queues a run again.
func (s *Server) postResume(r *request) error {
	id, err := r.ID("id")
	if err != nil {
		return err
	}
	return s.afterAction(r, id, s.resumeRun(r, id), "The run is queued again and continues from its last checkpoint.")
}

// afterAction goes back to the run with what happened; what a user can cause is said there.
func (s *Server) afterAction(r *request, id int64, err error, done string) error {
	to := "/runs/" + strconv.FormatInt(id, 10)
	if err == nil {
		return r.RedirectWith(to, "good", done)
	}
	if e, ok := safe(err); ok && statusOf(e.Code) == http.StatusConflict {
		return r.RedirectWith(to, "bad", e.Message)
	}
	return err
}

// paletteItem is one place that the palette can go to.
type paletteItem struct {
	Text string `json:"text"`
	Hint string `json:"hint"`
	Href string `json:"href"`
}

// paletteAPI finds runs by name, experiment or id, and a trajectory by its id.
func (s *Server) paletteAPI(r *request) error {
	q := clip(r.Query("q"), 200)
	out := []paletteItem{}
	page, err := s.store.ListRuns(r.Context(), store.RunFilter{Search: q, Sort: "-id", Limit: 8})
	if err != nil {
		return err
	}
	for _, run := range page.Runs {
		out = append(out, paletteItem{Text: run.Name, Hint: run.Experiment + " · " + string(run.State), Href: "/runs/" + strconv.FormatInt(run.ID, 10)})
	}
	if _, _, ok := runOfTrajectory(q); ok {
		if t, err := s.store.Trajectory(r.Context(), q); err == nil {
			out = append(out, paletteItem{Text: "Trajectory " + t.ID, Hint: t.Task, Href: "/trajectories/" + t.ID})
		}
	}
	return r.JSON(http.StatusOK, map[string]any{"items": out})
}
