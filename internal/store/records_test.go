package store_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/metric"
	"agentrl/internal/store"
	"agentrl/internal/trajectory"
)

func recordTests() []conformance {
	return []conformance{
		{"trajectory", testTrajectory}, {"trajectory lists", testTrajectoryLists}, {"groups", testGroups},
		{"commit is idempotent", testCommitIdempotent}, {"commit is atomic", testCommitAtomic}, {"superseded", testSuperseded},
		{"cancelled context", testCancelled}, {"many writers", testManyWriters},
	}
}

func episode(run int64, attempt int, step, draw int64, member int) *trajectory.Trajectory {
	return &trajectory.Trajectory{ID: trajectory.MakeID(run, attempt, "rl", draw, member, 0), RunID: run, Attempt: attempt, Step: step, Phase: "rl",
		Group: draw, Member: member, Task: "alfworld-train", Sample: draw, Status: trajectory.Completed, Trained: true, EnvReward: 1, Reward: 1,
		Pass: member%2 == 0, AdvantageGroup: 0.5, Advantage: -0.25, DispatchVersion: 3, Staleness: 1, StartedAt: start, EndedAt: start.Add(time.Minute),
		Tools: []trajectory.Tool{{Name: "act", Description: "d", Parameters: []byte(`{"type":"object"}`)}},
		Open:  []trajectory.Message{{Role: trajectory.System, Content: "s\x00 日本"}, {Role: trajectory.User, Content: "go"}},
		Turns: []trajectory.Turn{
			{PolicyID: "current", Letter: "C", TokenStart: 2, TokenEnd: 4, Trainable: true, Message: trajectory.Message{Role: trajectory.Assistant, Content: "look",
				ToolCalls: []trajectory.ToolCall{{ID: "1", Name: "act", Arguments: "{"}}}, Replies: []trajectory.Message{{Role: trajectory.ToolRole, Content: "ok"}}},
			{Index: 1, PolicyID: "stale", Letter: "S", TokenStart: 5, TokenEnd: 6, Metrics: map[string]float64{"q": 0.5}, StartedAt: start},
		},
		Tokens: []int32{1, 2, 3, -4, 5, 6}, Logprobs: []float32{0, 0, -0.5, -1.25, 0, -3}, TrainLogprobs: []float32{0, 0, -0.5, -1.5, 0, float32(math.Inf(-1))}}
}

func testTrajectory(t *testing.T, f fixture) {
	ctx := t.Context()
	r := f.newRun(t, "r")
	l := f.acquire(t, r.ID, "w")
	e := episode(r.ID, 1, 5, 7, 0)
	odd := episode(r.ID, 1, 5, 7, 1)
	odd.Turns[1].Metrics["bad"] = math.Inf(1)
	odd.Reward, odd.Error, odd.TrainLogprobs, odd.Status = math.NaN(), "lost \x00", nil, trajectory.AgentInvalidAction
	must(t, f.CommitStep(ctx, l, experiment.StepCommit{Trajectories: []*trajectory.Trajectory{e, odd}}))

	want := *e
	want.NumTurns, want.TurnLetters, want.NumTokens, want.NumActionTokens = 2, "CS", 6, 2
	want.Tokens, want.Logprobs, want.TrainLogprobs = nil, nil, nil
	if b := got(f.Trajectory(ctx, e.ID))(t); !reflect.DeepEqual(b, want) {
		t.Fatalf("got  %+v\nwant %+v", b, want)
	}
	tok, lp, tr, err := f.TrajectoryTokens(ctx, e.ID)
	must(t, err)
	if !slices.Equal(tok, e.Tokens) || !slices.Equal(lp, e.Logprobs) || !slices.Equal(tr, e.TrainLogprobs) {
		t.Fatalf("%v %v %v", tok, lp, tr)
	}
	list, total, err := f.Trajectories(ctx, store.TrajectoryFilter{RunID: r.ID, Step: -1, Draw: -1})
	must(t, err)
	want.Tools, want.Open, want.Turns = nil, nil, nil
	if total != 2 || !reflect.DeepEqual(list[0], want) {
		t.Fatalf("%d %+v", total, list)
	}
	if o := list[1]; !math.IsNaN(o.Reward) || o.Error != "lost \uFFFD" || o.Status != trajectory.AgentInvalidAction {
		t.Fatalf("%+v", o)
	}
	if _, _, tr, err := f.TrajectoryTokens(ctx, odd.ID); err != nil || tr != nil {
		t.Fatalf("%v %v", tr, err)
	}
	if o := got(f.Trajectory(ctx, odd.ID))(t); len(o.Turns[1].Metrics) != 1 || len(odd.Turns[1].Metrics) != 2 {
		t.Fatalf("%v %v", o.Turns[1].Metrics, odd.Turns[1].Metrics)
	}
	_, err = f.Trajectory(ctx, "nope")
	wantCode(t, err, errs.NotFound)
	_, _, _, err = f.TrajectoryTokens(ctx, "nope")
	wantCode(t, err, errs.NotFound)
	for _, bad := range []func(*trajectory.Trajectory){
		func(t *trajectory.Trajectory) { t.ID = "" },
		func(t *trajectory.Trajectory) { t.RunID = 99 },
		func(t *trajectory.Trajectory) { t.Logprobs = t.Logprobs[:2] },
		func(t *trajectory.Trajectory) { t.Turns[0].Reward = math.NaN() },
	} {
		e := episode(r.ID, 1, 6, 8, 0)
		bad(e)
		wantCode(t, f.CommitStep(ctx, l, experiment.StepCommit{Trajectories: []*trajectory.Trajectory{e}}), errs.Invalid)
	}
}

func testTrajectoryLists(t *testing.T, f fixture) {
	ctx := t.Context()
	r := f.newRun(t, "r")
	l := f.acquire(t, r.ID, "w")
	var all []*trajectory.Trajectory
	for step := range int64(3) {
		for draw := range int64(2) {
			for member := range 4 {
				e := episode(r.ID, 1, step, 2*step+draw, member)
				if draw == 1 {
					e.Task, e.Phase, e.Status = "db", "eval", trajectory.TurnCap
				}
				all = append(all, e)
			}
		}
	}
	must(t, f.CommitStep(ctx, l, experiment.StepCommit{Trajectories: all}))
	yes := true
	any := store.TrajectoryFilter{RunID: r.ID, Step: -1, Draw: -1}
	with := func(change func(*store.TrajectoryFilter)) store.TrajectoryFilter { f := any; change(&f); return f }
	for _, c := range []struct {
		f     store.TrajectoryFilter
		total int64
		first string
	}{
		{any, 24, "2 5 0"},
		{with(func(f *store.TrajectoryFilter) { f.Step = 0 }), 8, "0 1 0"},
		{with(func(f *store.TrajectoryFilter) { f.Draw = 4 }), 4, "2 4 0"},
		{with(func(f *store.TrajectoryFilter) { f.Phase = "rl" }), 12, "2 4 0"},
		{with(func(f *store.TrajectoryFilter) { f.Task = "db" }), 12, "2 5 0"},
		{with(func(f *store.TrajectoryFilter) { f.EndState = "Task Limit Reached" }), 12, "2 5 0"},
		{with(func(f *store.TrajectoryFilter) { f.Pass = &yes }), 12, "2 5 0"},
		{with(func(f *store.TrajectoryFilter) { f.Offset, f.Limit = 5, 2 }), 24, "2 4 1"},
		{with(func(f *store.TrajectoryFilter) { f.Offset = 30 }), 24, ""},
		{with(func(f *store.TrajectoryFilter) { f.RunID = 99 }), 0, ""},
	} {
		list, total, err := f.Trajectories(ctx, c.f)
		must(t, err)
		first := ""
		if len(list) > 0 {
			first = fmt.Sprint(list[0].Step, list[0].Group, list[0].Member)
		}
		if total != c.total || first != c.first {
			t.Errorf("%+v: %d, first %s; want %d, %s", c.f, total, first, c.total, c.first)
		}
	}
	for _, bad := range []store.TrajectoryFilter{{Limit: 201}, {Offset: -1}} {
		_, _, err := f.Trajectories(ctx, bad)
		wantCode(t, err, errs.Invalid)
	}
}

func testGroups(t *testing.T, f fixture) {
	ctx := t.Context()
	r := f.newRun(t, "r")
	l := f.acquire(t, r.ID, "w")
	mk := func(step, draw int64, spread float64, passes int) experiment.Group {
		return experiment.Group{RunID: r.ID, Attempt: 1, Step: step, Draw: draw, Task: "a", Sample: draw, Size: 2, Rewards: []float64{0, 1}, Members: []string{"x", "y"},
			Letters: []string{"CS", "C"}, Mean: 0.5, Spread: spread, Passes: passes, AgeSeconds: float64(10 - draw), Staleness: 1}
	}
	gs := []experiment.Group{mk(1, 1, 0.3, 1), mk(1, 2, 0.9, 0), mk(2, 3, math.NaN(), 2), mk(2, 4, 0.1, 1)}
	gs[2].Rewards[1], gs[3].Task = math.NaN(), "b"
	must(t, f.CommitStep(ctx, l, experiment.StepCommit{Groups: gs}))
	for _, c := range []struct {
		f    store.GroupFilter
		want []int64
	}{
		{store.GroupFilter{Step: -1}, []int64{4, 3, 2, 1}},
		{store.GroupFilter{Step: -1, Sort: "step"}, []int64{1, 2, 3, 4}},
		{store.GroupFilter{Step: -1, Sort: "-spread"}, []int64{2, 1, 4, 3}},
		{store.GroupFilter{Step: -1, Sort: "spread"}, []int64{4, 1, 2, 3}},
		{store.GroupFilter{Step: -1, Sort: "-passes"}, []int64{3, 4, 1, 2}},
		{store.GroupFilter{Step: -1, Sort: "age"}, []int64{4, 3, 2, 1}},
		{store.GroupFilter{Step: 1}, []int64{2, 1}},
		{store.GroupFilter{Step: -1, Task: "b"}, []int64{4}},
		{store.GroupFilter{Step: -1, Offset: 1, Limit: 2}, []int64{3, 2}},
	} {
		c.f.RunID = r.ID
		list, total, err := f.Groups(ctx, c.f)
		must(t, err)
		var draws []int64
		for _, g := range list {
			draws = append(draws, g.Draw)
		}
		if !slices.Equal(draws, c.want) || total < int64(len(c.want)) {
			t.Errorf("%+v: %v (total %d), want %v", c.f, draws, total, c.want)
		}
	}
	list, _, err := f.Groups(ctx, store.GroupFilter{RunID: r.ID, Step: 1})
	must(t, err)
	if !reflect.DeepEqual(list[1], gs[0]) {
		t.Fatalf("got %+v\nwant %+v", list[1], gs[0])
	}
	list, _, err = f.Groups(ctx, store.GroupFilter{RunID: r.ID, Step: 2})
	must(t, err)
	if g := list[1]; g.Rewards[0] != 0 || !math.IsNaN(g.Rewards[1]) || !math.IsNaN(g.Spread) {
		t.Fatalf("%+v", g)
	}
	_, _, err = f.Groups(ctx, store.GroupFilter{RunID: r.ID, Sort: "size"})
	wantCode(t, err, errs.Invalid)
}

func testCommitIdempotent(t *testing.T, f fixture) {
	ctx := t.Context()
	r := f.newRun(t, "r")
	l := f.acquire(t, r.ID, "w")
	c := experiment.StepCommit{
		Points:       []metric.Point{{Metric: "a", Step: 2, Value: 4}, {Metric: "a", Step: 1, Value: 3}, {Metric: "b", Step: 1, Value: math.NaN()}},
		Trajectories: []*trajectory.Trajectory{episode(r.ID, 1, 1, 1, 0)},
		Groups:       []experiment.Group{{Step: 1, Draw: 1, Rewards: []float64{1}}},
		Progress:     experiment.Progress{Step: 2},
	}
	for range 3 {
		must(t, f.CommitStep(ctx, l, c))
	}
	s := got(f.Summaries(ctx, r.ID))(t)
	if len(s) != 2 || s[0].N != 2 || s[0].Last != 4 || s[0].Min != 3 || s[0].FirstStep != 1 || s[0].LastStep != 2 || s[1].N != 1 || s[1].NaN != 1 || !math.IsNaN(s[1].Min) {
		t.Fatalf("%+v", s)
	}
	if _, n, _ := f.Trajectories(ctx, store.TrajectoryFilter{RunID: r.ID, Step: -1, Draw: -1}); n != 1 {
		t.Fatalf("%d trajectories", n)
	}
	if _, n, _ := f.Groups(ctx, store.GroupFilter{RunID: r.ID, Step: -1}); n != 1 {
		t.Fatalf("%d groups", n)
	}
	for _, p := range []metric.Point{{Metric: "a", Step: 2, Value: 5}, {Metric: "b", Step: 1, Value: 0}, {Metric: "a", Step: 0, Value: 1}} {
		err := f.CommitStep(ctx, l, experiment.StepCommit{Points: []metric.Point{p}})
		wantCode(t, err, errs.Conflict)
		if !strings.Contains(err.Error(), "metric "+p.Metric) {
			t.Fatalf("%v", err)
		}
	}
	wantCode(t, f.CommitStep(ctx, l, experiment.StepCommit{Points: []metric.Point{{Step: 9}}}), errs.Invalid)
	// A double far behind the open tail.
	var many []metric.Point
	for i := range int64(2000) {
		many = append(many, metric.Point{Metric: "long", Step: 2 * i, Value: float64(i)})
	}
	must(t, f.CommitStep(ctx, l, experiment.StepCommit{Points: many}))
	must(t, f.CommitStep(ctx, l, experiment.StepCommit{Points: many[300:340]}))
	many[310].Value++
	wantCode(t, f.CommitStep(ctx, l, experiment.StepCommit{Points: many[300:340]}), errs.Conflict)
	wantCode(t, f.CommitStep(ctx, l, experiment.StepCommit{Points: []metric.Point{{Metric: "long", Step: 601}}}), errs.Conflict)
}

func testCommitAtomic(t *testing.T, f fixture) {
	ctx := t.Context()
	r := f.newRun(t, "r")
	l := f.acquire(t, r.ID, "w")
	bad := episode(r.ID, 1, 1, 1, 1)
	bad.Logprobs = bad.Logprobs[:1]
	err := f.CommitStep(ctx, l, experiment.StepCommit{Points: []metric.Point{{Metric: "a", Step: 1}},
		Trajectories: []*trajectory.Trajectory{episode(r.ID, 1, 1, 1, 0), bad}, Progress: experiment.Progress{Step: 1}})
	wantCode(t, err, errs.Invalid)
	if s := got(f.Summaries(ctx, r.ID))(t); len(s) != 0 {
		t.Fatalf("%+v", s)
	}
	if _, n, _ := f.Trajectories(ctx, store.TrajectoryFilter{RunID: r.ID, Step: -1, Draw: -1}); n != 0 {
		t.Fatalf("%d trajectories of a failed commit", n)
	}
	if b := got(f.Run(ctx, r.ID))(t); b.Progress.Step != 0 {
		t.Fatalf("%+v", b.Progress)
	}
}

func testSuperseded(t *testing.T, f fixture) {
	ctx := t.Context()
	r := f.newRun(t, "r")
	commit := func(l experiment.Lease, from, to int64) {
		t.Helper()
		for step := from; step <= to; step++ {
			must(t, f.CommitStep(ctx, l, experiment.StepCommit{Trajectories: []*trajectory.Trajectory{episode(r.ID, l.Attempt, step, step, 0)},
				Groups: []experiment.Group{{Step: step, Draw: step}}}))
		}
	}
	commit(f.attempt(t, r.ID, 0, 0), 1, 10)
	list := func() (out []string) {
		t.Helper()
		l, total, err := f.Trajectories(ctx, store.TrajectoryFilter{RunID: r.ID, Step: -1, Draw: -1})
		must(t, err)
		g, gTotal, err := f.Groups(ctx, store.GroupFilter{RunID: r.ID, Step: -1})
		must(t, err)
		if total != gTotal || int(total) != len(l) {
			t.Fatalf("%d trajectories, %d groups, %d listed", total, gTotal, len(l))
		}
		for i, e := range l {
			if g[i].Step != e.Step || g[i].Attempt != e.Attempt {
				t.Fatalf("group %+v beside trajectory %+v", g[i], e)
			}
			out = append(out, fmt.Sprintf("%d.%d", e.Attempt, e.Step))
		}
		return out
	}
	f.clock.advance(2 * ttl)
	f.acquire(t, r.ID, "w") // an attempt that never began changes nothing
	if l := list(); len(l) != 10 {
		t.Fatalf("%v", l)
	}
	commit(f.attempt(t, r.ID, 0, 6), 7, 8)
	if l := list(); !slices.Equal(l, []string{"3.8", "3.7", "1.6", "1.5", "1.4", "1.3", "1.2", "1.1"}) {
		t.Fatalf("%v", l)
	}
	commit(f.attempt(t, r.ID, 0, 4), 5, 5)
	if l := list(); !slices.Equal(l, []string{"4.5", "1.4", "1.3", "1.2", "1.1"}) {
		t.Fatalf("%v", l)
	}
}

func testCancelled(t *testing.T, f fixture) {
	r := f.newRun(t, "r")
	l := f.acquire(t, r.ID, "w")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"write":  func() error { return f.CommitStep(ctx, l, experiment.StepCommit{}) },
		"list":   func() error { _, err := f.ListRuns(ctx, store.RunFilter{}); return err },
		"series": func() error { _, err := f.Series(ctx, metric.Query{Runs: []int64{r.ID}, X: metric.ByStep}); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) || errs.CodeOf(err) != errs.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, f.CommitStep(t.Context(), l, experiment.StepCommit{}))
}

func testManyWriters(t *testing.T, f fixture) {
	ctx := t.Context()
	const runs, steps = 6, 15
	leases := make([]experiment.Lease, runs)
	for i := range leases {
		leases[i] = f.acquire(t, f.newRun(t, fmt.Sprint("r", i)).ID, "w")
	}
	var wg sync.WaitGroup
	for _, l := range leases {
		wg.Go(func() {
			for step := range int64(steps) {
				err := f.CommitStep(ctx, l, experiment.StepCommit{Points: []metric.Point{{Metric: "a", Step: step}, {Metric: "b", Step: step}}, Progress: experiment.Progress{Step: step}})
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := f.Renew(ctx, l, f.clock.now(), ttl); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range steps {
				if _, err := f.Summaries(ctx, l.RunID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, l := range leases {
		for _, s := range got(f.Summaries(ctx, l.RunID))(t) {
			if s.N != steps {
				t.Errorf("run %d: %+v", l.RunID, s)
			}
		}
	}
}
