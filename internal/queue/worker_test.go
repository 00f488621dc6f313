package queue

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

func TestRunIsExecutedAndReleased(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, f *fixture) {
		r := f.run(t)
		w := f.worker(t, "w", nil)
		f.enqueue(t, r)
		p := f.exec.next(t)
		if p.run.ID != r.ID || p.lease.Attempt != 1 || p.lease.WorkerID != "w" || p.run.State != experiment.Running {
			t.Errorf("executed %+v under %+v", p.run, p.lease)
		}
		if got := w.Info().RunIDs; len(got) != 1 || got[0] != r.ID {
			t.Errorf("worker shows runs %v", got)
		}
		ws, err := f.st.Workers(t.Context())
		if err != nil || len(ws) != 1 || ws[0].ID != "w" || ws[0].Slots != 1 || ws[0].SeenAt.IsZero() {
			t.Errorf("workers %+v, %v", ws, err)
		}
		p.end(experiment.Finished)
		f.wants(t, r.ID, experiment.Finished, 1, "")
		if err := w.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ws, err := f.st.Workers(t.Context()); err != nil || len(ws) != 0 {
			t.Errorf("a stopped worker is still listed: %v, %v", ws, err)
		}
		if err := w.Start(t.Context()); errs.CodeOf(err) != errs.Conflict {
			t.Errorf("a stopped worker started: %v", err)
		}
	})
}

// Every way in which an execution can end, except by itself.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		ask     experiment.Signal
		drain   bool // the worker is asked to stop
		hard    bool // and does not wait
		answer  experiment.Outcome
		want    experiment.State
		reason  string
		byStop  bool // the executor is asked to save
		byAbort bool // the executor is cancelled
	}{
		{name: "user stops", ask: "stop", answer: experiment.Outcome{State: experiment.Stopped}, want: experiment.Stopped, reason: "stopped by a user", byStop: true},
		{name: "user stops too late", ask: "stop", answer: experiment.Outcome{State: experiment.Finished}, want: experiment.Finished, byStop: true},
		{name: "user cancels", ask: "cancel", answer: experiment.Outcome{State: experiment.Failed, Reason: "context canceled"}, want: experiment.Cancelled, reason: "cancelled by a user", byAbort: true},
		{name: "worker drains", drain: true, answer: experiment.Outcome{State: experiment.Stopped}, want: experiment.Queued, reason: "goes on from its checkpoint", byStop: true},
		{name: "worker drains, run fails", drain: true, answer: experiment.Outcome{State: experiment.Failed, Reason: "bad loss"}, want: experiment.Failed, reason: "bad loss", byStop: true},
		{name: "worker does not wait", drain: true, hard: true, answer: experiment.Outcome{State: experiment.Cancelled}, want: experiment.Queued, reason: "before it could save", byAbort: true},
		{name: "run fails", answer: experiment.Outcome{State: experiment.Failed, Reason: "disk full"}, want: experiment.Failed, reason: "disk full"},
		{name: "run stops by itself", answer: experiment.Outcome{State: experiment.Stopped, Reason: "disk full"}, want: experiment.Stopped, reason: "disk full"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "")
			r := f.run(t)
			w := f.worker(t, "w", nil)
			f.enqueue(t, r)
			p := f.exec.next(t)
			if tc.ask != "" {
				if err := f.st.RequestStop(t.Context(), r.ID, tc.ask); err != nil {
					t.Fatal(err)
				}
			}
			stopped := make(chan struct{})
			if tc.drain {
				go func() {
					defer close(stopped)
					ctx, cancel := context.WithCancel(context.Background())
					defer cancel()
					if tc.hard {
						cancel()
					}
					if err := w.Stop(ctx); err != nil {
						t.Error(err)
					}
				}()
			}
			if tc.byStop {
				wait(t, "request to save", p.stop)
				if p.ctx.Err() != nil {
					t.Error("the execution was cancelled as well")
				}
			}
			if tc.byAbort {
				wait(t, "cancellation", p.ctx.Done())
			}
			p.answer <- tc.answer
			f.wants(t, r.ID, tc.want, 1, tc.reason)
			if tc.drain {
				wait(t, "end of the drain", stopped)
			}
		})
	}
}

func TestDrainedRunGoesOnElsewhere(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, f *fixture) {
		r := f.run(t)
		first := f.worker(t, "a", nil)
		f.enqueue(t, r)
		p := f.exec.next(t)
		go func() {
			<-p.stop
			p.end(experiment.Stopped)
		}()
		if err := first.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		f.worker(t, "b", nil) // without any reconciler
		p = f.exec.next(t)
		if p.lease.Attempt != 2 || p.lease.WorkerID != "b" {
			t.Errorf("second lease %+v", p.lease)
		}
		p.end(experiment.Finished)
		f.wants(t, r.ID, experiment.Finished, 2, "")
	})
}

func TestFencedRunWritesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	r := f.run(t)
	w := f.worker(t, "w", nil)
	f.enqueue(t, r)
	p := f.exec.next(t)
	f.st.set(func(f *faulty) { f.fenced = true })
	wait(t, "cancellation", p.ctx.Done())
	p.end(experiment.Finished)
	if err := w.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f.st.releases != 0 {
		t.Errorf("released %d times after the lease was lost", f.st.releases)
	}
	if got, _ := f.st.Run(t.Context(), r.ID); got.State != experiment.Running {
		t.Errorf("the new holder's run became %s", got.State)
	}
}

func TestDatabaseAwayCancelsBeforeTheLeaseRunsOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	r := f.run(t)
	f.worker(t, "w", func(c *WorkerConfig) { c.LeaseTTL, c.RenewEvery = 2*time.Second, 100*time.Millisecond })
	f.enqueue(t, r)
	p := f.exec.next(t)
	f.st.set(func(f *faulty) { f.down = true })
	wait(t, "cancellation", p.ctx.Done())
	p.end(experiment.Failed)
	f.st.set(func(f *faulty) { f.down = false })
	f.wants(t, r.ID, experiment.Queued, 1, "database could not be reached")
	p = f.exec.next(t) // and goes on
	p.end(experiment.Finished)
	f.wants(t, r.ID, experiment.Finished, 2, "")
}

func TestPanicFailsTheRunOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	bad, good := f.run(t), f.run(t)
	f.worker(t, "w", func(c *WorkerConfig) {
		c.Executor = ExecutorFunc(func(ctx context.Context, run experiment.Run, l experiment.Lease, stop <-chan struct{}) experiment.Outcome {
			if run.ID == bad.ID {
				panic("index out of range")
			}
			return experiment.Outcome{State: experiment.Finished}
		})
	})
	f.enqueue(t, bad)
	f.enqueue(t, good)
	f.wants(t, bad.ID, experiment.Failed, 1, "internal error: index out of range")
	f.wants(t, good.ID, experiment.Finished, 1, "")
}

func TestCrashesWithoutProgressEnd(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	doomed, young := f.run(t), f.run(t)
	f.lose(t, doomed.ID, 5)
	f.lose(t, young.ID, 4)
	f.worker(t, "w", nil)
	if err := f.reconciler().Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := f.exec.next(t)
	if p.run.ID != young.ID || p.lease.Attempt != 5 {
		t.Errorf("executed run %d, attempt %d", p.run.ID, p.lease.Attempt)
	}
	p.end(experiment.Finished)
	f.wants(t, doomed.ID, experiment.Failed, 6, "died 5 times in a row without progress")
	f.wants(t, young.ID, experiment.Finished, 5, "")
}

func TestStopAskedOfADeadWorker(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	stop, cancel := f.run(t), f.run(t)
	for r, s := range map[int64]experiment.Signal{stop.ID: "stop", cancel.ID: "cancel"} {
		f.lose(t, r, 1)
		if err := f.st.RequestStop(t.Context(), r, s); err != nil {
			t.Fatal(err)
		}
	}
	f.worker(t, "w", nil)
	if err := f.reconciler().Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.wants(t, stop.ID, experiment.Stopped, 2, "stopped by a user")
	f.wants(t, cancel.ID, experiment.Cancelled, 2, "cancelled by a user")
	if len(f.exec.started) != 0 {
		t.Error("a run that shall stop was executed")
	}
}

// Two workers, every delivery several times, and reconcilers in between: each run is executed exactly once.
func TestNeverTwoWorkersForOneRun(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, f *fixture) {
		const runs = 6
		var mu sync.Mutex
		count := map[int64]int{}
		exec := ExecutorFunc(func(ctx context.Context, run experiment.Run, l experiment.Lease, stop <-chan struct{}) experiment.Outcome {
			mu.Lock()
			count[run.ID]++
			mu.Unlock()
			for i := range 3 { // doubled deliveries meanwhile
				if _, err := NewEnqueuer(f.rc).deliver(ctx, run, i+1); err != nil {
					t.Error(err)
				}
			}
			return experiment.Outcome{State: experiment.Finished}
		})
		for _, id := range []string{"a", "b"} {
			f.worker(t, id, func(c *WorkerConfig) { c.Executor, c.Info.Slots = exec, 2 })
		}
		list := make([]experiment.Run, runs)
		var wg sync.WaitGroup
		for i := range list {
			list[i] = f.run(t)
		}
		for range 3 {
			wg.Go(func() {
				if err := f.reconciler().Pass(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, r := range list {
			f.wants(t, r.ID, experiment.Finished, 1, "")
		}
		mu.Lock()
		defer mu.Unlock()
		for _, r := range list {
			if count[r.ID] != 1 {
				t.Errorf("run %d was executed %d times", r.ID, count[r.ID])
			}
		}
	})
}

func TestCrashes(t *testing.T) {
	t.Parallel()
	lost := func(n int, warmup, step int64) experiment.Attempt {
		return experiment.Attempt{Number: n, StartWarmup: warmup, StartStep: step, Outcome: experiment.Failed, Reason: lostReason}
	}
	other := experiment.Attempt{Number: 2, Outcome: experiment.Stopped}
	for _, tc := range []struct {
		name string
		list []experiment.Attempt
		want int
	}{
		{"none", nil, 0},
		{"one", []experiment.Attempt{lost(1, 0, 0)}, 1},
		{"in a row", []experiment.Attempt{lost(1, 0, 0), lost(2, 0, 0), lost(3, 0, 0)}, 3},
		{"progress between", []experiment.Attempt{lost(1, 0, 0), lost(2, 0, 25), lost(3, 0, 25)}, 2},
		{"progress in the warm start", []experiment.Attempt{lost(1, 0, 0), lost(2, 100, 0)}, 1},
		{"died before it began", []experiment.Attempt{lost(1, 0, 25), lost(2, 0, 0), lost(3, 0, 25)}, 1},
		{"a stop between", []experiment.Attempt{lost(1, 0, 0), other, lost(3, 0, 0)}, 1},
		{"failed by itself", []experiment.Attempt{lost(1, 0, 0), {Number: 2, Outcome: experiment.Failed, Reason: "disk full"}}, 0},
		{"the current one does not count", []experiment.Attempt{lost(1, 0, 0), {Number: 9, Outcome: experiment.Running}}, 1},
	} {
		if got := crashes(tc.list, 9); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestNewWorkerRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	for name, change := range map[string]func(c *WorkerConfig){
		"no store":    func(c *WorkerConfig) { c.Store = nil },
		"no id":       func(c *WorkerConfig) { c.Info.ID = "" },
		"no slots":    func(c *WorkerConfig) { c.Info.Slots = 0 },
		"no queue":    func(c *WorkerConfig) { c.Info.Queues = nil },
		"bad queue":   func(c *WorkerConfig) { c.Info.Queues = []string{"GPU workers"} },
		"lazy lease":  func(c *WorkerConfig) { c.LeaseTTL, c.RenewEvery = time.Second, time.Second },
		"long queue":  func(c *WorkerConfig) { c.Info.Queues = []string{strings.Repeat("x", 64)} },
		"no executor": func(c *WorkerConfig) { c.Executor = nil },
	} {
		c := WorkerConfig{Redis: f.rc, Store: f.st, Executor: f.exec, Logger: quiet, Info: experiment.Worker{ID: "w", Queues: []string{"q"}, Slots: 1}}
		change(&c)
		if _, err := NewWorker(c); errs.CodeOf(err) != errs.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
