package web

import (
	"context"
	"log/slog"
	"net/http"
	"slices"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/live"
	"agentrl/templates"
)

// adminRoutes are users, the audit record, the queue and the workers.
func (s *Server) adminRoutes() []route {
	return append(s.usersRoutes(),
		route{Method: "GET", Path: "/queue", Min: viewer, Handler: s.queuePage},
		route{Method: "GET", Path: "/workers", Min: viewer, Handler: s.workersPage},
	)
}

func (s *Server) queuePage(r *request) error {
	states, limit, err := r.jobQuery()
	if err != nil {
		return err
	}
	v := templates.QueueView{Now: s.clock(), States: jobStates(), State: r.Query("state"), Find: clip(r.Query("find"), 40), Limit: limit}
	if v.Counts, err = s.jobCounts(r); err != nil {
		return err
	}
	if v.Find != "" {
		v.Jobs, err = s.findJobs(r, v.Find, states)
	} else {
		v.Jobs, err = s.store.Jobs(r.Context(), states, limit)
	}
	if err != nil {
		return err
	}
	stats, ok := s.queueStats(r)
	v.Reachable = ok
	for _, q := range stats {
		v.Queues = append(v.Queues, templates.QueueSize{
			Name: q.Queue, Pending: q.Pending, Active: q.Active, Retry: q.Retry, Scheduled: q.Scheduled, Done: q.Processed, Failures: q.Failed, Paused: q.Paused,
		})
	}
	if id, err := parseID(v.Find); err == nil {
		for _, d := range s.deliveries(r, id) {
			v.Deliveries = append(v.Deliveries, templates.QueueDelivery{ID: d.ID, Queue: d.Queue, State: d.State, Error: d.LastError, Retried: d.Retried})
		}
	}
	var ids []int64
	for _, j := range v.Jobs {
		ids = append(ids, j.RunID)
	}
	v.Names = s.runNames(r.Context(), ids)
	p := r.Page("Queue", "queue", templates.Crumb{Text: "Queue"})
	p.Topics, p.Script, p.Wide = []string{live.QueueTopic}, "list", true
	return r.Render(http.StatusOK, templates.QueuePage(p, v))
}

// findJobs finds the job of a number and all jobs of the run of that number.
func (s *Server) findJobs(r *request, find string, states []experiment.JobState) ([]experiment.Job, error) {
	id, err := parseID(find)
	if err != nil {
		return nil, nil // nothing has such a number; the page says that nothing matches
	}
	var out []experiment.Job
	j, err := s.store.Job(r.Context(), id)
	switch {
	case err == nil:
		out = append(out, j)
	case errs.CodeOf(err) != errs.NotFound:
		return nil, err
	}
	recent, err := s.store.Jobs(r.Context(), states, maxLimit)
	if err != nil {
		return nil, err
	}
	for _, j := range recent {
		if j.RunID == id && (len(out) == 0 || out[0].ID != j.ID) {
			out = append(out, j)
		}
	}
	return slices.DeleteFunc(out, func(j experiment.Job) bool {
		return len(states) > 0 && !slices.Contains(states, j.State)
	}), nil
}

// runNames looks the names of runs up; a name that cannot be had is left out.
func (s *Server) runNames(ctx context.Context, ids []int64) map[int64]string {
	out := map[int64]string{}
	for _, id := range ids {
		if _, ok := out[id]; ok {
			continue
		}
		run, err := s.store.Run(ctx, id)
		if err != nil {
			s.log.LogAttrs(ctx, slog.LevelWarn, "name of a run", slog.Int64("run", id), slog.Any("err", err))
		}
		out[id] = run.Name
	}
	return out
}

func (s *Server) workersPage(r *request) error {
	all, err := s.store.Workers(r.Context())
	if err != nil {
		return err
	}
	var ids []int64
	for _, w := range all {
		ids = append(ids, w.RunIDs...)
	}
	p := r.Page("Workers", "workers", templates.Crumb{Text: "Workers"})
	p.Topics, p.Script, p.Wide = []string{live.WorkersTopic}, "list", true
	return r.Render(http.StatusOK, templates.WorkersPage(p, templates.WorkersView{Now: s.clock(), Workers: all, Names: s.runNames(r.Context(), ids)}))
}
