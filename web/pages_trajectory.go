package web

import (
	"net/http"
	"regexp"
	"strconv"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/store"
	"agentrl/internal/trajectory"
	"agentrl/templates"
)

var trajectoryID = regexp.MustCompile(`^([1-9][0-9]{0,17})-([0-9]{1,9})-(e?)([0-9]{1,18})-([0-9]{1,9})(?:-r([0-9]{1,9}))?$`)

// runOfTrajectory reads the run and the shape of an id that trajectory.MakeID built.
func runOfTrajectory(id string) (run int64, t trajectory.Trajectory, ok bool) {
	m := trajectoryID.FindStringSubmatch(id)
	if m == nil {
		return 0, t, false
	}
	num := func(s string) int64 { n, _ := strconv.ParseInt(s, 10, 64); return n } // the pattern bounds the digits
	t = trajectory.Trajectory{ID: id, RunID: num(m[1]), Attempt: int(num(m[2])), Phase: "rl", Group: num(m[4]), Member: int(num(m[5])), Retry: int(num(m[6]))}
	if m[3] == "e" {
		t.Phase = "eval"
	}
	return t.RunID, t, true
}

// trajectoryPage shows an episode. One that is still being played is not stored: its page fills itself live.
func (s *Server) trajectoryPage(r *request) error {
	ctx := r.Context()
	id := r.Param("id")
	runID, shape, ok := runOfTrajectory(id)
	if !ok {
		return errs.New(errs.NotFound, "%q is not the id of a trajectory", clip(id, 60))
	}
	run, err := s.store.Run(ctx, runID)
	if err != nil {
		return err
	}
	v := templates.TrajectoryView{Now: s.clock(), Run: run}
	v.T, err = s.store.Trajectory(ctx, id)
	switch {
	case errs.CodeOf(err) == errs.NotFound && (run.State == experiment.Running || run.State == experiment.Stopping):
		v.T, v.Live = shape, true
	case err != nil:
		return err
	default:
		if _, v.T.Logprobs, _, err = s.store.TrajectoryTokens(ctx, id); err != nil && errs.CodeOf(err) != errs.NotFound {
			return err
		}
		v.Members, _, err = s.store.Trajectories(ctx, store.TrajectoryFilter{RunID: runID, Step: -1, Draw: v.T.Group, Phase: v.T.Phase, Limit: 200})
		if err != nil {
			return err
		}
		for i, m := range v.Members {
			if m.ID != id {
				continue
			}
			if i > 0 {
				v.Prev = v.Members[i-1].ID
			}
			if i+1 < len(v.Members) {
				v.Next = v.Members[i+1].ID
			}
		}
	}
	runAt := "/runs/" + strconv.FormatInt(runID, 10)
	p := r.Page("Trajectory "+id, "runs",
		templates.Crumb{Text: run.Experiment, Href: "/runs?experiment=" + strconv.FormatInt(run.ExperimentID, 10)},
		templates.Crumb{Text: run.Name, Href: runAt},
		templates.Crumb{Text: "Group " + strconv.FormatInt(v.T.Group, 10), Href: runAt + "/rollouts?draw=" + strconv.FormatInt(v.T.Group, 10)},
		templates.Crumb{Text: id})
	p.Script = "trajectory"
	if v.Live {
		p.Topics = []string{"trajectory/" + id}
	}
	p.Keys = []templates.Key{
		{Press: "j / k", Does: "next and previous turn"},
		{Press: "[ / ]", Does: "previous and next member of the group"},
		{Press: "t", Does: "show and hide the tokens"},
		{Press: "← →", Does: "in the tokens: next and previous token"},
	}
	return r.Render(http.StatusOK, templates.TrajectoryPage(p, v))
}

// tokenItem is one token of a trajectory. Text is empty when the run's vocabulary is not at hand; Turn is -1 outside
// the sampled stretches.
type tokenItem struct {
	ID        int32    `json:"id"`
	Text      string   `json:"text"`
	Turn      int      `json:"turn"`
	Letter    string   `json:"letter,omitempty"`
	Trainable bool     `json:"trainable"`
	Logprob   *float32 `json:"logprob,omitempty"`
	Train     *float32 `json:"train_logprob,omitempty"`
	Advantage *float64 `json:"advantage,omitempty"`
}

// tokensAPI answers with every token: who wrote it, its log-prob then and at training, and its advantage.
func (s *Server) tokensAPI(r *request) error {
	ctx := r.Context()
	id := r.Param("id")
	if _, _, ok := runOfTrajectory(id); !ok {
		return errs.New(errs.NotFound, "%q is not the id of a trajectory", clip(id, 60))
	}
	t, err := s.store.Trajectory(ctx, id)
	if err != nil {
		return err
	}
	t.Tokens, t.Logprobs, t.TrainLogprobs, err = s.store.TrajectoryTokens(ctx, id)
	if err != nil {
		return err
	}
	return r.JSON(http.StatusOK, map[string]any{"id": id, "tokens": tokenItems(t, s.tokenTexts(ctx, t.RunID, t.Tokens))})
}

func tokenItems(t trajectory.Trajectory, texts []string) []tokenItem {
	out := make([]tokenItem, len(t.Tokens))
	for i, id := range t.Tokens {
		out[i] = tokenItem{ID: id, Turn: -1}
		if i < len(texts) {
			out[i].Text = texts[i]
		}
	}
	for _, u := range t.Turns {
		for i := max(u.TokenStart, 0); i < u.TokenEnd && i < len(out); i++ {
			o := &out[i]
			o.Turn, o.Letter, o.Trainable = u.Index, u.Letter, u.Trainable
			if i < len(t.Logprobs) {
				o.Logprob = &t.Logprobs[i]
			}
			if i < len(t.TrainLogprobs) && u.Trainable {
				o.Train = &t.TrainLogprobs[i]
			}
			if u.Trainable && t.Phase != "eval" {
				a := t.Advantage
				o.Advantage = &a
			}
		}
	}
	return out
}
