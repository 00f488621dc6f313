package web

import (
	"context"
	"log/slog"
	"math"
	"net/http"
	"strconv"

	"agentrl/internal/errs"
	"agentrl/internal/live"
	"agentrl/internal/metric"
	"agentrl/internal/store"
	"agentrl/internal/trajectory"
)

func (s *Server) apiRecordRoutes() []route {
	const run = "/api/v1/runs/:id"
	return []route{
		{Method: "GET", Path: run + "/attempts", Min: viewer, Handler: s.apiAttempts},
		{Method: "GET", Path: run + "/events", Min: viewer, Handler: s.apiEvents},
		{Method: "GET", Path: run + "/checkpoints", Min: viewer, Handler: s.apiCheckpoints},
		{Method: "GET", Path: run + "/summaries", Min: viewer, Handler: s.apiSummaries},
		{Method: "GET", Path: run + "/groups", Min: viewer, Handler: s.apiGroups},
		{Method: "GET", Path: run + "/trajectories", Min: viewer, Handler: s.apiTrajectories},
		{Method: "GET", Path: "/api/v1/series", Min: viewer, Handler: s.apiSeries},
		{Method: "GET", Path: "/api/v1/trajectories/:id", Min: viewer, Handler: s.apiTrajectory},
		{Method: "GET", Path: "/api/v1/trajectories/:id/tokens", Min: viewer, Handler: s.apiTokensOf},
	}
}

// existing is the id of the path's run, which must exist.
func (s *Server) existing(r *request) (int64, error) {
	id, err := r.ID("id")
	if err != nil {
		return 0, err
	}
	_, err = s.store.Run(r.Context(), id)
	return id, err
}

func (s *Server) apiAttempts(r *request) error {
	id, err := s.existing(r)
	if err != nil {
		return err
	}
	all, err := s.store.Attempts(r.Context(), id)
	if err != nil {
		return err
	}
	return answerList(r, all, "", nil)
}

func (s *Server) apiEvents(r *request) error {
	id, err := s.existing(r)
	if err != nil {
		return err
	}
	limit, err := r.Limit()
	if err != nil {
		return err
	}
	after, err := r.QueryInt("cursor", 0, 0, math.MaxInt64)
	if err != nil {
		return err
	}
	ev, err := s.store.Events(r.Context(), id, after, limit)
	if err != nil {
		return err
	}
	next := ""
	if len(ev) == limit {
		next = strconv.FormatInt(ev[len(ev)-1].ID, 10)
	}
	return answerList(r, ev, next, nil)
}

func (s *Server) apiCheckpoints(r *request) error {
	id, err := s.existing(r)
	if err != nil {
		return err
	}
	all, err := s.store.Checkpoints(r.Context(), id)
	if err != nil {
		return err
	}
	return answerList(r, all, "", nil)
}

// summaryJSON is metric.Summary with null for what is not a number.
type summaryJSON struct {
	metric.Summary
	Last num `json:"last"`
	Min  num `json:"min"`
	Max  num `json:"max"`
}

func (s *Server) apiSummaries(r *request) error {
	id, err := s.existing(r)
	if err != nil {
		return err
	}
	all, err := s.store.Summaries(r.Context(), id)
	if err != nil {
		return err
	}
	out := make([]summaryJSON, 0, len(all))
	for _, m := range all {
		out = append(out, summaryJSON{m, num(m.Last), num(m.Min), num(m.Max)})
	}
	return answerList(r, out, "", nil)
}

var groupSorts = [...]string{"step", "spread", "mean", "age", "passes"}

// groupFilter reads the query of the groups list, for API and page alike.
func (r *request) groupFilter(run int64) (store.GroupFilter, error) {
	f := store.GroupFilter{RunID: run, Task: r.Query("task"), Sort: r.Query("sort")}
	var err error
	if f.Step, err = r.QueryInt("step", -1, 0, math.MaxInt64); err != nil {
		return f, err
	}
	if err := oneOf("sort", f.Sort, groupSorts[:]); err != nil {
		return f, err
	}
	if f.Limit, err = r.Limit(); err != nil {
		return f, err
	}
	f.Offset, err = r.Offset()
	return f, err
}

func (s *Server) apiGroups(r *request) error {
	id, err := s.existing(r)
	if err != nil {
		return err
	}
	f, err := r.groupFilter(id)
	if err != nil {
		return err
	}
	all, total, err := s.store.Groups(r.Context(), f)
	if err != nil {
		return err
	}
	return answerList(r, all, nextOffset(f.Offset, len(all), total), &total)
}

// trajectoryFilter reads the query of the trajectories list, for API and page alike.
func (r *request) trajectoryFilter(run int64) (store.TrajectoryFilter, error) {
	f := store.TrajectoryFilter{RunID: run, Phase: r.Query("phase"), Task: r.Query("task"), EndState: r.Query("end_state")}
	var err error
	if f.Step, err = r.QueryInt("step", -1, 0, math.MaxInt64); err != nil {
		return f, err
	}
	if f.Draw, err = r.QueryInt("group", -1, 0, math.MaxInt64); err != nil {
		return f, err
	}
	switch f.Phase {
	case "", "rl", "eval":
	default:
		return f, errs.Field("phase", "must be rl or eval, not %q", clip(f.Phase, 40))
	}
	switch v := r.Query("pass"); v {
	case "":
	case "true", "false":
		b := v == "true"
		f.Pass = &b
	default:
		return f, errs.Field("pass", "must be true or false, not %q", clip(v, 40))
	}
	if f.EndState != "" {
		ok := false
		for _, e := range trajectory.EndStates() {
			ok = ok || string(e) == f.EndState
		}
		if !ok {
			return f, errs.Field("end_state", "%q is not known; allowed are %v", clip(f.EndState, 40), trajectory.EndStates())
		}
	}
	if f.Limit, err = r.Limit(); err != nil {
		return f, err
	}
	f.Offset, err = r.Offset()
	return f, err
}

func (s *Server) apiTrajectories(r *request) error {
	id, err := s.existing(r)
	if err != nil {
		return err
	}
	f, err := r.trajectoryFilter(id)
	if err != nil {
		return err
	}
	all, total, err := s.store.Trajectories(r.Context(), f)
	if err != nil {
		return err
	}
	return answerList(r, all, nextOffset(f.Offset, len(all), total), &total)
}

func (s *Server) apiTrajectory(r *request) error {
	t, err := s.store.Trajectory(r.Context(), r.Param("id"))
	if err != nil {
		return err
	}
	return r.JSON(http.StatusOK, t)
}

// tokensJSON are parallel arrays over the whole sequence: log-probs of the sampled tokens (0 elsewhere) at sampling
// and, once trained, of the trainer before its update.
type tokensJSON struct {
	ID       string  `json:"id"`
	Tokens   []int32 `json:"tokens"`
	Logprobs []num   `json:"logprobs"`
	Train    []num   `json:"train_logprobs"`
}

func (s *Server) apiTokensOf(r *request) error {
	id := r.Param("id")
	tok, lp, tr, err := s.store.TrajectoryTokens(r.Context(), id)
	if err != nil {
		return err
	}
	if tok == nil {
		tok = []int32{}
	}
	return r.JSON(http.StatusOK, tokensJSON{id, tok, nums(lp), nums(tr)})
}

func nums(v []float32) []num {
	out := make([]num, len(v))
	for i, x := range v {
		out[i] = num(x)
	}
	return out
}

const maxSeriesRuns = 100

// bucketJSON is metric.Bucket with null for what is not a number: a bucket of NaN values only.
type bucketJSON struct {
	X0    float64 `json:"x0"`
	X1    float64 `json:"x1"`
	First num     `json:"first"`
	Min   num     `json:"min"`
	Max   num     `json:"max"`
	Last  num     `json:"last"`
	Sum   num     `json:"sum"`
	Count int64   `json:"count"`
	NaN   int64   `json:"nan"`
}

type seriesJSON struct {
	metric.Series
	Buckets []bucketJSON `json:"buckets"`
}

// seriesQuery reads the chart query. Fewer buckets are given per run when many runs are asked for.
func (r *request) seriesQuery() (metric.Query, error) {
	q := metric.Query{Metric: r.Query("metric"), X: metric.Axis(r.Query("x")), From: math.NaN(), To: math.NaN()}
	if q.Metric == "" || len(q.Metric) > 300 {
		return q, errs.Field("metric", "is missing or longer than 300 bytes; name one series, such as reward/mean")
	}
	for _, v := range splitList(r.Query("runs")) {
		id, err := parseID(v)
		if err != nil {
			return q, errs.Field("runs", "%q is not the number of a run; give numbers separated by commas", clip(v, 40))
		}
		q.Runs = append(q.Runs, id)
	}
	if len(q.Runs) == 0 || len(q.Runs) > maxSeriesRuns {
		return q, errs.Field("runs", "name 1 to %d runs, separated by commas", maxSeriesRuns)
	}
	switch q.X {
	case "":
		q.X = metric.ByStep
	case metric.ByStep, metric.ByTime, metric.ByTokens, metric.BySamples:
	default:
		return q, errs.Field("x", "%q is not known; allowed are step, time, tokens and samples", clip(string(q.X), 40))
	}
	for name, to := range map[string]*float64{"from": &q.From, "to": &q.To} {
		if v := r.Query(name); v != "" {
			f, err := strconv.ParseFloat(v, 64)
			if err != nil || math.IsNaN(f) {
				return q, errs.Field(name, "must be a number, not %q", clip(v, 40))
			}
			*to = f
		}
	}
	px, err := r.QueryInt("px", 1200, 1, 4000)
	q.Px = metric.BucketsPerSeries(int(px), len(q.Runs))
	return q, err
}

func (s *Server) apiSeries(r *request) error {
	q, err := r.seriesQuery()
	if err != nil {
		return err
	}
	format := r.Query("format")
	if format != "" && format != "buckets" && format != "columns" {
		return errs.Field("format", "must be buckets or columns, not %q", clip(format, 40))
	}
	all, err := s.seriesOf(r.Context(), q)
	if err != nil {
		return err
	}
	if format == "columns" {
		return answerList(r, metric.Compact(all), "", nil)
	}
	out := make([]seriesJSON, 0, len(all))
	for _, se := range all {
		j := seriesJSON{se, make([]bucketJSON, len(se.Buckets))}
		for i, b := range se.Buckets {
			j.Buckets[i] = bucketJSON{b.X0, b.X1, num(b.First), num(b.Min), num(b.Max), num(b.Last), num(b.Sum), b.Count, b.NaN}
		}
		out = append(out, j)
	}
	return answerList(r, out, "", nil)
}

// seriesOf reads the live cursors first and the points after them: a point may then come twice, which its step tells,
// but never be missing.
func (s *Server) seriesOf(ctx context.Context, q metric.Query) ([]metric.Series, error) {
	seq := map[int64]int64{}
	for _, id := range q.Runs {
		n, err := s.o.Hub.LastSeq(ctx, live.MetricsTopic(id))
		if err != nil {
			s.log.LogAttrs(ctx, slog.LevelWarn, "live cursor is not known", slog.Int64("run", id), slog.Any("err", err))
		}
		seq[id] = n
	}
	all, err := s.store.Series(ctx, q)
	for i := range all {
		all[i].Seq = seq[all[i].RunID]
	}
	return all, err
}

// oneOf accepts the empty string and the allowed words, with "-" in front for descending.
func oneOf(field, v string, allowed []string) error {
	if v == "" {
		return nil
	}
	for _, a := range allowed {
		if v == a || v == "-"+a {
			return nil
		}
	}
	return errs.Field(field, "%q is not known; allowed are %v, with - in front for descending", clip(v, 40), allowed)
}
