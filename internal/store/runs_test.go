package store_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/store"
)

func runTests() []conformance {
	return []conformance{
		{"experiments", testExperiments}, {"create run", testCreateRun}, {"paging", testPaging}, {"filters", testFilters},
		{"stop and resume", testStopResume}, {"workers", testWorkers}, {"events", testEvents}, {"counters", testCounters},
	}
}

func testExperiments(t *testing.T, f fixture) {
	ctx := t.Context()
	e := got(f.CreateExperiment(ctx, experiment.Experiment{Name: " Ablation ", Description: "d"}))(t)
	_, err := f.CreateExperiment(ctx, experiment.Experiment{Name: "Ablation"})
	wantCode(t, err, errs.Conflict)
	_, err = f.CreateExperiment(ctx, experiment.Experiment{Name: "  "})
	wantCode(t, err, errs.Invalid)
	e.Name, e.Description = "Second", "e"
	must(t, f.UpdateExperiment(ctx, e))
	b := got(f.ExperimentByName(ctx, "Second"))(t)
	if b.ID != e.ID || b.Description != "e" || !b.CreatedAt.Equal(start) {
		t.Fatalf("%+v", b)
	}
	wantCode(t, f.UpdateExperiment(ctx, experiment.Experiment{ID: 99, Name: "x"}), errs.NotFound)
	got(f.CreateRun(ctx, experiment.Run{ExperimentID: e.ID, Name: "r"}))(t)
	l := got(f.Experiments(ctx))(t)
	if len(l) != 1 || l[0].Runs != 1 {
		t.Fatalf("%+v", l)
	}
}

func testCreateRun(t *testing.T, f fixture) {
	ctx := t.Context()
	r := f.newRun(t, "first")
	b := got(f.Run(ctx, r.ID))(t)
	if !reflect.DeepEqual(b, r) {
		t.Fatalf("returned %+v\nstored %+v", r, b)
	}
	if b.State != experiment.Queued || b.Experiment != "exp first" || b.Config.Seed != 1<<63+7 || b.Seed != 1<<63+7 || b.ConfigYAML != "name: first" {
		t.Fatalf("%+v", b)
	}
	if b.Progress.PassRate != -1 || b.Progress.EvalPass != -1 || b.Progress.RewardMean >= -1 {
		t.Fatalf("headline numbers of a new run: %+v", b.Progress)
	}
	jobs := got(f.Jobs(ctx, []experiment.JobState{experiment.JobPending}, 10))(t)
	if len(jobs) != 1 || jobs[0].RunID != r.ID || jobs[0].Queue != "cpu" {
		t.Fatalf("%+v", jobs)
	}
	ev := got(f.Events(ctx, r.ID, 0, 10))(t)
	if len(ev) != 1 || ev[0].Kind != "queued" {
		t.Fatalf("%+v", ev)
	}
	_, err := f.CreateRun(ctx, experiment.Run{ExperimentID: 99, Name: "x"})
	wantCode(t, err, errs.NotFound)
	if p := got(f.ListRuns(ctx, store.RunFilter{}))(t); p.Total != 1 || p.Runs[0].ConfigYAML != "" {
		t.Fatalf("%+v", p)
	}
	_, err = f.Run(ctx, 99)
	wantCode(t, err, errs.NotFound)
}

func testPaging(t *testing.T, f fixture) {
	ctx := t.Context()
	const n = 23
	for i := range n {
		f.clock.advance(time.Second)
		r := f.newRun(t, fmt.Sprintf("r%d", i%5))
		if i%3 == 0 {
			l := f.acquire(t, r.ID, "w")
			must(t, f.CommitStep(ctx, l, experiment.StepCommit{Progress: experiment.Progress{Step: int64(i % 4), RewardMean: 0.1 * float64(i%7), PassRate: 1.0 / 3, EvalPass: -1}}))
		}
	}
	for _, key := range []string{"id", "name", "state", "step", "reward", "pass", "eval", "created", "updated"} {
		var seen [2][]int64
		for d, sort := range []string{key, "-" + key} {
			q := store.RunFilter{Sort: sort, Limit: 4}
			for {
				p := got(f.ListRuns(ctx, q))(t)
				if p.Total != n {
					t.Fatalf("total %d", p.Total)
				}
				for _, r := range p.Runs {
					seen[d] = append(seen[d], r.ID)
				}
				if p.Next == "" {
					break
				}
				q.Cursor = p.Next
			}
			if s := slices.Clone(seen[d]); len(s) != n {
				t.Fatalf("%s: %d of %d runs", sort, len(s), n)
			} else if slices.Sort(s); len(slices.Compact(s)) != n {
				t.Fatalf("%s: doubles in %v", sort, seen[d])
			}
		}
		slices.Reverse(seen[1])
		if !slices.Equal(seen[0], seen[1]) {
			t.Fatalf("%s: descending is not the reverse: %v %v", key, seen[0], seen[1])
		}
	}
	p := got(f.ListRuns(ctx, store.RunFilter{Sort: "name", Limit: 1}))(t)
	_, err := f.ListRuns(ctx, store.RunFilter{Sort: "-name", Limit: 1, Cursor: p.Next})
	wantCode(t, err, errs.Invalid)
	for _, bad := range []store.RunFilter{{Sort: "rewards"}, {Limit: 201}, {Limit: -1}, {Cursor: "!"}, {Cursor: "e30"}} {
		_, err := f.ListRuns(ctx, bad)
		wantCode(t, err, errs.Invalid)
	}
}

func testFilters(t *testing.T, f fixture) {
	ctx := t.Context()
	a, b := f.newRun(t, "Alpha_1"), f.newRun(t, "beta 100%")
	f.acquire(t, b.ID, "w")
	for _, c := range []struct {
		f    store.RunFilter
		want []int64
	}{
		{store.RunFilter{Search: "ALPHA"}, []int64{a.ID}},
		{store.RunFilter{Search: "a_1"}, []int64{a.ID}},
		{store.RunFilter{Search: "a-1"}, nil},
		{store.RunFilter{Search: "100%"}, []int64{b.ID}},
		{store.RunFilter{Search: fmt.Sprint(b.ID)}, []int64{b.ID}},
		{store.RunFilter{Search: "exp be"}, []int64{b.ID}},
		{store.RunFilter{States: []experiment.State{experiment.Queued}}, []int64{a.ID}},
		{store.RunFilter{States: []experiment.State{experiment.Queued, experiment.Running}, Sort: "id"}, []int64{a.ID, b.ID}},
		{store.RunFilter{ExperimentID: b.ExperimentID}, []int64{b.ID}},
		{store.RunFilter{Search: `\`}, nil},
	} {
		p := got(f.ListRuns(ctx, c.f))(t)
		var ids []int64
		for _, r := range p.Runs {
			ids = append(ids, r.ID)
		}
		if !slices.Equal(ids, c.want) || p.Total != int64(len(c.want)) {
			t.Errorf("%+v: runs %v total %d, want %v", c.f, ids, p.Total, c.want)
		}
	}
	if n := got(f.CountRuns(ctx))(t); n[experiment.Queued] != 1 || n[experiment.Running] != 1 || len(n) != 2 {
		t.Fatalf("%v", n)
	}
}

func testStopResume(t *testing.T, f fixture) {
	ctx := t.Context()
	state := func(id int64, want experiment.State, job experiment.JobState) {
		t.Helper()
		r := got(f.Run(ctx, id))(t)
		for _, j := range got(f.Jobs(ctx, nil, 0))(t) {
			if j.RunID == id {
				if r.State != want || j.State != job {
					t.Fatalf("run is %s, newest job %s; want %s and %s", r.State, j.State, want, job)
				}
				return
			}
		}
		t.Fatal("no job")
	}
	q := f.newRun(t, "queued")
	wantCode(t, f.RequestStop(ctx, q.ID, "pause"), errs.Invalid)
	wantCode(t, f.RequestStop(ctx, 99, "stop"), errs.NotFound)
	wantCode(t, f.Resume(ctx, q.ID), errs.Conflict)
	must(t, f.RequestStop(ctx, q.ID, "cancel"))
	state(q.ID, experiment.Cancelled, experiment.JobCancelled)
	wantCode(t, f.RequestStop(ctx, q.ID, "stop"), errs.Conflict)
	must(t, f.Resume(ctx, q.ID))
	state(q.ID, experiment.Queued, experiment.JobPending)
	must(t, f.RequestStop(ctx, q.ID, "stop"))
	state(q.ID, experiment.Stopped, experiment.JobCancelled)

	r := f.newRun(t, "running")
	l := f.acquire(t, r.ID, "w")
	state(r.ID, experiment.Running, experiment.JobActive)
	must(t, f.RequestStop(ctx, r.ID, "stop"))
	state(r.ID, experiment.Stopping, experiment.JobActive)
	if s := got(f.Renew(ctx, l, f.clock.now(), ttl))(t); s != "stop" {
		t.Fatalf("signal %q", s)
	}
	must(t, f.RequestStop(ctx, r.ID, "cancel"))
	must(t, f.RequestStop(ctx, r.ID, "stop")) // does not take the cancel back
	if s := got(f.Renew(ctx, l, f.clock.now(), ttl))(t); s != "cancel" {
		t.Fatalf("signal %q", s)
	}
	must(t, f.Release(ctx, l, experiment.Outcome{State: experiment.Stopped, Reason: "saved"}, f.clock.now()))
	state(r.ID, experiment.Stopped, experiment.JobDone)
	must(t, f.Resume(ctx, r.ID))
	if b := got(f.Run(ctx, r.ID))(t); b.StopRequested != "" || b.Reason != "" || b.WorkerID != "" || !b.FinishedAt.IsZero() {
		t.Fatalf("after resume: %+v", b)
	}
	l = f.acquire(t, r.ID, "w")
	must(t, f.Release(ctx, l, experiment.Outcome{State: experiment.Finished}, f.clock.now()))
	wantCode(t, f.Resume(ctx, r.ID), errs.Conflict)
	n := got(f.JobCounts(ctx))(t)
	if n[experiment.JobDone] != 2 || n[experiment.JobCancelled] != 2 {
		t.Fatalf("%v", n)
	}
}

func testWorkers(t *testing.T, f fixture) {
	ctx := t.Context()
	w := worker("w1")
	w.RunIDs, w.StartedAt, w.SeenAt, w.Memory = []int64{3, 4}, start, start, 1<<40
	must(t, f.SaveWorker(ctx, w))
	w.SeenAt, w.Draining = start.Add(time.Minute), true
	must(t, f.SaveWorker(ctx, w))
	must(t, f.SaveWorker(ctx, worker("w0")))
	l := got(f.Workers(ctx))(t)
	if len(l) != 2 || l[0].ID != "w0" || !reflect.DeepEqual(l[1], w) {
		t.Fatalf("%+v", l)
	}
	must(t, f.DeleteWorker(ctx, "w0"))
	must(t, f.DeleteWorker(ctx, "w0"))
	if l := got(f.Workers(ctx))(t); len(l) != 1 {
		t.Fatalf("%+v", l)
	}
}

func testEvents(t *testing.T, f fixture) {
	ctx := t.Context()
	r := f.newRun(t, "r")
	l := f.acquire(t, r.ID, "w")
	must(t, f.AddEvent(ctx, l, experiment.Event{Kind: "eval", Message: "pass 0.5\x00"}))
	must(t, f.AddEvent(ctx, experiment.Lease{}, experiment.Event{RunID: r.ID, Level: "warn", Kind: "note", Message: "from outside"}))
	wantCode(t, f.AddEvent(ctx, experiment.Lease{}, experiment.Event{RunID: 99, Kind: "x"}), errs.NotFound)
	wantCode(t, f.AddEvent(ctx, l, experiment.Event{Level: "loud"}), errs.Invalid)
	var kinds []string
	after := int64(0)
	for {
		ev := got(f.Events(ctx, r.ID, after, 1))(t)
		if len(ev) == 0 {
			break
		}
		kinds, after = append(kinds, ev[0].Kind), ev[0].ID
		if ev[0].Kind == "eval" && (ev[0].Attempt != 1 || ev[0].Message != "pass 0.5\uFFFD" || ev[0].Level != "info") {
			t.Fatalf("%+v", ev[0])
		}
	}
	if !slices.Equal(kinds, []string{"queued", "started", "eval", "note"}) {
		t.Fatalf("%v", kinds)
	}
}
