package store_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/metric"
)

func leaseTests() []conformance {
	return []conformance{
		{"lease", testLease}, {"one winner", testOneWinner}, {"fenced writes", testFencedWrites}, {"orphans", testOrphans},
		{"release outcomes", testReleaseOutcomes}, {"start", testSetStart}, {"checkpoints", testCheckpoints},
	}
}

func testLease(t *testing.T, f fixture) {
	ctx := t.Context()
	r := f.newRun(t, "r")
	run, l, err := f.Acquire(ctx, r.ID, worker("w1"), f.clock.now(), ttl)
	must(t, err)
	if run.State != experiment.Running || run.Attempt != 1 || run.WorkerID != "w1" || run.Config.Budget.Steps != 300 || !run.StartedAt.Equal(start) {
		t.Fatalf("%+v", run)
	}
	if l.RunID != r.ID || l.Attempt != 1 || l.WorkerID != "w1" {
		t.Fatalf("%+v", l)
	}
	_, _, err = f.Acquire(ctx, r.ID, worker("w2"), f.clock.now(), ttl)
	if !errors.Is(err, experiment.ErrLeased) {
		t.Fatalf("%v", err)
	}
	f.clock.advance(20 * time.Second)
	got(f.Renew(ctx, l, f.clock.now(), ttl))(t)
	f.clock.advance(20 * time.Second) // past the first end, before the renewed one
	if _, _, err = f.Acquire(ctx, r.ID, worker("w2"), f.clock.now(), ttl); !errors.Is(err, experiment.ErrLeased) {
		t.Fatalf("%v", err)
	}
	f.clock.advance(11 * time.Second)
	run, l2, err := f.Acquire(ctx, r.ID, worker("w2"), f.clock.now(), ttl)
	must(t, err)
	if run.Attempt != 2 || run.WorkerID != "w2" || l2.Fence <= l.Fence || !run.StartedAt.Equal(start) {
		t.Fatalf("%+v %+v", run, l2)
	}
	a := got(f.Attempts(ctx, r.ID))(t)
	if len(a) != 2 || a[0].Outcome != experiment.Failed || a[0].Host != "host-w1" || !a[0].EndedAt.Equal(start.Add(50*time.Second)) ||
		a[1].Outcome != experiment.Running || !a[1].LeaseUntil.Equal(f.clock.now().Add(ttl)) {
		t.Fatalf("%+v", a)
	}
	_, _, err = f.Acquire(ctx, 99, worker("w"), f.clock.now(), ttl)
	wantCode(t, err, errs.NotFound)
	j := got(f.Jobs(ctx, nil, 0))(t)
	if len(j) != 1 || j[0].Tries != 2 || j[0].WorkerID != "w2" {
		t.Fatalf("%+v", j)
	}
}

func testOneWinner(t *testing.T, f fixture) {
	r := f.newRun(t, "r")
	const n = 8
	out := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { _, _, out[i] = f.Acquire(t.Context(), r.ID, worker("w"), f.clock.now(), ttl) })
	}
	wg.Wait()
	won := 0
	for _, err := range out {
		if err == nil {
			won++
		} else if !errors.Is(err, experiment.ErrLeased) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Fatalf("%d winners", won)
	}
}

func testFencedWrites(t *testing.T, f fixture) {
	ctx := t.Context()
	r := f.newRun(t, "r")
	old := f.acquire(t, r.ID, "w1")
	f.clock.advance(2 * ttl)
	point := []metric.Point{{Metric: "m", Step: 1, Value: 1}}
	must(t, f.CommitStep(ctx, old, experiment.StepCommit{Points: point})) // ran out, but nobody else writes
	f.acquire(t, r.ID, "w2")
	before := got(f.Run(ctx, r.ID))(t)
	for name, write := range map[string]func() error{
		"commit": func() error {
			return f.CommitStep(ctx, old, experiment.StepCommit{Points: []metric.Point{{Metric: "m", Step: 2}}, Progress: experiment.Progress{Step: 2}})
		},
		"renew": func() error { _, err := f.Renew(ctx, old, f.clock.now(), ttl); return err },
		"start": func() error { return f.SetStart(ctx, old, 0, 0, "") },
		"release": func() error {
			return f.Release(ctx, old, experiment.Outcome{State: experiment.Finished}, f.clock.now())
		},
		"event":      func() error { return f.AddEvent(ctx, old, experiment.Event{Kind: "x"}) },
		"checkpoint": func() error { return f.AddCheckpoint(ctx, old, experiment.CheckpointInfo{Dir: "d"}) },
		"delete":     func() error { return f.DeleteCheckpoint(ctx, old, "d") },
		"unknown run": func() error {
			return f.CommitStep(ctx, experiment.Lease{RunID: 99, Attempt: 1, Fence: 1}, experiment.StepCommit{})
		},
	} {
		if err := write(); !errors.Is(err, experiment.ErrFenced) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if after := got(f.Run(ctx, r.ID))(t); after.Progress != before.Progress || after.State != experiment.Running {
		t.Fatalf("changed: %+v", after)
	}
	if s := got(f.Summaries(ctx, r.ID))(t); len(s) != 1 || s[0].N != 1 {
		t.Fatalf("%+v", s)
	}
}

func testOrphans(t *testing.T, f fixture) {
	ctx := t.Context()
	q, lost, held, done := f.newRun(t, "q"), f.newRun(t, "lost"), f.newRun(t, "held"), f.newRun(t, "done")
	f.acquire(t, lost.ID, "w")
	must(t, f.RequestStop(ctx, lost.ID, "stop"))
	l := f.acquire(t, done.ID, "w")
	must(t, f.Release(ctx, l, experiment.Outcome{State: experiment.Finished}, f.clock.now()))
	f.clock.advance(2 * ttl)
	f.acquire(t, held.ID, "w")
	o := got(f.Orphans(ctx, f.clock.now()))(t)
	if len(o) != 2 || o[0].ID != q.ID || o[1].ID != lost.ID || o[1].Queue != "cpu" {
		t.Fatalf("%+v", o)
	}
	run, _, err := f.Acquire(ctx, lost.ID, worker("w2"), f.clock.now(), ttl)
	must(t, err)
	if run.State != experiment.Stopping {
		t.Fatalf("state %s: the stop was forgotten", run.State)
	}
}

func testReleaseOutcomes(t *testing.T, f fixture) {
	ctx := t.Context()
	for _, c := range []struct {
		out  experiment.State
		stop experiment.Signal
		want experiment.State
		job  experiment.JobState
	}{
		{experiment.Finished, "", experiment.Finished, experiment.JobDone},
		{experiment.Stopped, "stop", experiment.Stopped, experiment.JobDone},
		{experiment.Failed, "", experiment.Failed, experiment.JobFailed},
		{experiment.Cancelled, "cancel", experiment.Cancelled, experiment.JobCancelled},
		{experiment.Queued, "", experiment.Queued, experiment.JobPending},
		{experiment.Queued, "stop", experiment.Stopped, experiment.JobDone},
		{experiment.Queued, "cancel", experiment.Cancelled, experiment.JobCancelled},
	} {
		r := f.newRun(t, "r")
		l := f.acquire(t, r.ID, "w")
		if c.stop != "" {
			must(t, f.RequestStop(ctx, r.ID, c.stop))
		}
		must(t, f.Release(ctx, l, experiment.Outcome{State: c.out, Reason: "because"}, f.clock.now()))
		b := got(f.Run(ctx, r.ID))(t)
		j := got(f.Jobs(ctx, nil, 1))(t)[0]
		if b.State != c.want || b.Reason != "because" || j.State != c.job || b.StopRequested != "" {
			t.Errorf("%+v: run %s (%s), job %s", c, b.State, b.Reason, j.State)
		}
		if err := f.Release(ctx, l, experiment.Outcome{State: c.out}, f.clock.now()); !errors.Is(err, experiment.ErrFenced) {
			t.Errorf("second release: %v", err)
		}
	}
	r := f.newRun(t, "r")
	l := f.acquire(t, r.ID, "w")
	wantCode(t, f.Release(ctx, l, experiment.Outcome{State: experiment.Running}, f.clock.now()), errs.Invalid)
}

func testSetStart(t *testing.T, f fixture) {
	ctx := t.Context()
	r := f.newRun(t, "r")
	l := f.acquire(t, r.ID, "w")
	must(t, f.SetStart(ctx, l, 40, 0, "avx512"))
	must(t, f.SetStart(ctx, l, 40, 0, "avx512"))
	wantCode(t, f.SetStart(ctx, l, 40, 5, "avx512"), errs.Conflict)
	wantCode(t, f.SetStart(ctx, l, -1, 0, ""), errs.Invalid)
	must(t, f.CommitStep(ctx, l, experiment.StepCommit{Progress: experiment.Progress{Step: 12}}))
	a := got(f.Attempts(ctx, r.ID))(t)
	if a[0].StartWarmup != 40 || a[0].Kernel != "avx512" || a[0].EndStep != 12 {
		t.Fatalf("%+v", a[0])
	}
}

func testCheckpoints(t *testing.T, f fixture) {
	ctx := t.Context()
	r := f.newRun(t, "r")
	l := f.acquire(t, r.ID, "w")
	for i := range 3 {
		f.clock.advance(time.Second)
		must(t, f.AddCheckpoint(ctx, l, experiment.CheckpointInfo{Step: int64(25 * i), Dir: []string{"a", "b", "c"}[i], Bytes: 1 << 40}))
	}
	must(t, f.AddCheckpoint(ctx, l, experiment.CheckpointInfo{Step: 50, Dir: "c", Bytes: 9, CreatedAt: f.clock.now()}))
	must(t, f.DeleteCheckpoint(ctx, l, "a"))
	must(t, f.DeleteCheckpoint(ctx, l, "a"))
	c := got(f.Checkpoints(ctx, r.ID))(t)
	if len(c) != 2 || c[0].Dir != "c" || c[0].Bytes != 9 || c[1].Dir != "b" || c[1].Attempt != 1 || c[1].RunID != r.ID {
		t.Fatalf("%+v", c)
	}
	wantCode(t, f.AddCheckpoint(ctx, l, experiment.CheckpointInfo{}), errs.Invalid)
}
