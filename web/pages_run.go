package web

import (
	"math"
	"net/http"
	"strconv"

	"agentrl/internal/experiment"
	"agentrl/internal/metric"
	"agentrl/internal/store"
	"agentrl/templates"
)

const listPerPage = 100

// runView loads what the head of every tab shows.
func (s *Server) runView(r *request, tab string) (templates.RunView, error) {
	id, err := r.ID("id")
	if err != nil {
		return templates.RunView{}, err
	}
	run, err := s.store.Run(r.Context(), id)
	if err != nil {
		return templates.RunView{}, err
	}
	v := templates.RunView{Now: s.clock(), Run: run, Tab: tab}
	attempts, err := s.store.Attempts(r.Context(), id)
	if err != nil {
		return v, err
	}
	if n := len(attempts); n > 0 {
		last := attempts[0]
		for _, a := range attempts {
			if a.Number > last.Number {
				last = a
			}
		}
		v.Attempt = last
		active := run.State == experiment.Running || run.State == experiment.Stopping
		v.Lost = active && !last.LeaseUntil.IsZero() && last.LeaseUntil.Before(v.Now)
	}
	switch run.State {
	case experiment.Stopped, experiment.Cancelled, experiment.Failed:
		v.CanResume = true
	}
	return v, nil
}

// runPage is the frame's data of a tab.
func (s *Server) runFrame(r *request, v templates.RunView, topics ...string) templates.Page {
	p := r.Page(v.Run.Name, "runs",
		templates.Crumb{Text: "Experiments", Href: "/experiments"},
		templates.Crumb{Text: v.Run.Experiment, Href: "/runs?experiment=" + strconv.FormatInt(v.Run.ExperimentID, 10)},
		templates.Crumb{Text: v.Run.Name})
	p.Wide, p.Script = true, "run"
	prefix := "run/" + strconv.FormatInt(v.Run.ID, 10) + "/"
	p.Topics = []string{prefix + "status"}
	for _, t := range topics {
		p.Topics = append(p.Topics, prefix+t)
	}
	p.Keys = []templates.Key{
		{Press: "1 … 7", Does: "overview, rollouts, groups, evaluations, config, attempts, log"},
		{Press: "s", Does: "stop the run, after asking"},
		{Press: "f", Does: "fork the run"},
		{Press: "p", Does: "pause live updates"},
		{Press: "← →", Does: "in a chart: move along x"},
		{Press: "+ −  Home End", Does: "in a chart: zoom, first and last value"},
	}
	return p
}

// overviewPage is the curves, what the run does now, and its latest rollouts.
func (s *Server) overviewPage(r *request) error {
	v, err := s.runView(r, "overview")
	if err != nil {
		return err
	}
	numbers, err := s.store.Summaries(r.Context(), v.Run.ID)
	if err != nil {
		return err
	}
	list, _, err := s.store.Trajectories(r.Context(), store.TrajectoryFilter{RunID: v.Run.ID, Step: -1, Draw: -1, Limit: 12})
	if err != nil {
		return err
	}
	o := templates.Overview{RunView: v, Tasks: taskList(v.Run.Config), Rollouts: list, Numbers: numbers,
		Charts: templates.RunCharts(v.Run.Config.Warmup.Demonstrations > 0, warming(v.Run))}
	p := s.runFrame(r, v, "metrics", "rollouts")
	p.Charts = true
	return r.Render(http.StatusOK, templates.RunOverview(p, o))
}

// warming reports whether the run has a warm start that no update has followed yet.
func warming(r experiment.Run) bool {
	return r.Config.Warmup.Demonstrations > 0 && r.Progress.Step == 0
}

// evaluationsPage joins the three series of every evaluated task into rows, newest first.
func (s *Server) evaluationsPage(r *request) error {
	v, err := s.runView(r, "evaluations")
	if err != nil {
		return err
	}
	e := templates.EvaluationsView{RunView: v, Chart: templates.RunCharts(false, false)[0]}
	e.Chart.Series = e.Chart.Series[1:]
	e.Chart.Title, e.Chart.Over, e.Chart.ID = "pass@1", "mean over unseen samples with 95 % band", "evals"
	e.Chart.PerTask = false
	for _, suffix := range append([]string{""}, v.Run.Config.Eval.Tasks...) {
		rows, err := s.evalRows(r, v.Run, suffix)
		if err != nil {
			return err
		}
		if suffix == "" && len(v.Run.Config.Eval.Tasks) == 1 {
			suffix = v.Run.Config.Eval.Tasks[0]
			for i := range rows {
				rows[i].Task = suffix
			}
			e.Rows = rows
			break
		}
		e.Rows = append(e.Rows, rows...)
	}
	p := s.runFrame(r, v, "metrics")
	p.Charts = true
	return r.Render(http.StatusOK, templates.EvaluationsPage(p, e))
}

func (s *Server) evalRows(r *request, run experiment.Run, task string) ([]templates.EvalRow, error) {
	bySeries := map[string]map[int64]float64{}
	var steps []int64
	for _, name := range []string{metric.EvalPass, metric.EvalLow, metric.EvalHigh} {
		full := name
		if task != "" {
			full += "/" + task
		}
		list, err := s.store.Series(r.Context(), metric.Query{Runs: []int64{run.ID}, Metric: full, X: metric.ByStep, From: math.NaN(), To: math.NaN(), Px: 1000})
		if err != nil {
			return nil, err
		}
		m := map[int64]float64{}
		for _, se := range list {
			if se.Faint {
				continue
			}
			for _, b := range se.Buckets {
				if b.Count == 0 {
					continue
				}
				m[int64(b.X1)] = b.Last
				if name == metric.EvalPass {
					steps = append(steps, int64(b.X1))
				}
			}
		}
		bySeries[name] = m
	}
	rows := make([]templates.EvalRow, 0, len(steps))
	label := task
	if label == "" {
		label = "all tasks"
	}
	for i := len(steps) - 1; i >= 0; i-- {
		at := steps[i]
		rows = append(rows, templates.EvalRow{Step: at, Task: label, Pass: bySeries[metric.EvalPass][at],
			Low: valueOr(bySeries[metric.EvalLow], at), High: valueOr(bySeries[metric.EvalHigh], at)})
	}
	return rows, nil
}

func valueOr(m map[int64]float64, k int64) float64 {
	if v, ok := m[k]; ok {
		return v
	}
	return math.NaN()
}

func taskList(c experiment.Config) []string {
	out := make([]string, 0, len(c.Tasks))
	for _, t := range c.Tasks {
		out = append(out, t.Task)
	}
	return out
}

// configPage shows the frozen run file.
func (s *Server) configPage(r *request) error {
	v, err := s.runView(r, "config")
	if err != nil {
		return err
	}
	return r.Render(http.StatusOK, templates.ConfigPage(s.runFrame(r, v), templates.ConfigView{RunView: v}))
}

// attemptsPage shows who executed the run and what was saved.
func (s *Server) attemptsPage(r *request) error {
	v, err := s.runView(r, "attempts")
	if err != nil {
		return err
	}
	a := templates.AttemptsView{RunView: v}
	if a.Attempts, err = s.store.Attempts(r.Context(), v.Run.ID); err != nil {
		return err
	}
	if a.Checkpoints, err = s.store.Checkpoints(r.Context(), v.Run.ID); err != nil {
		return err
	}
	workers, err := s.store.Workers(r.Context())
	if err != nil {
		return err
	}
	for i := range workers {
		if v.Run.WorkerID != "" && workers[i].ID == v.Run.WorkerID {
			a.Worker = &workers[i]
		}
	}
	return r.Render(http.StatusOK, templates.AttemptsPage(s.runFrame(r, v), a))
}

// logPage shows the events, oldest first, from the one after "after".
func (s *Server) logPage(r *request) error {
	v, err := s.runView(r, "log")
	if err != nil {
		return err
	}
	after, err := r.QueryInt("after", 0, 0, 1<<62)
	if err != nil {
		return err
	}
	const limit = 200
	l := templates.LogView{RunView: v}
	if l.Events, err = s.store.Events(r.Context(), v.Run.ID, after, limit); err != nil {
		return err
	}
	if n := len(l.Events); n == limit {
		l.More = "/runs/" + strconv.FormatInt(v.Run.ID, 10) + "/log?after=" + strconv.FormatInt(l.Events[n-1].ID, 10)
	}
	return r.Render(http.StatusOK, templates.LogPage(s.runFrame(r, v, "events"), l))
}
