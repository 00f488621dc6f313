package queue

import (
	"context"
	"testing"
	"time"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/redis"
)

func TestRestartWithEmptyRedis(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	r := f.run(t)
	f.enqueue(t, r)
	fresh, err := redis.Open(t.Context(), "", quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fresh.Close() })
	f.rc = fresh
	f.worker(t, "w", nil)
	rec := f.reconciler()
	for range 2 {
		if err := rec.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	p := f.exec.next(t)
	p.end(experiment.Finished)
	f.wants(t, r.ID, experiment.Finished, 1, "")
	rec.Stop()
	rec.Stop()
}

func TestDeadWorkersRunGoesOn(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, f *fixture) {
		r := f.run(t)
		f.enqueue(t, r) // the dead worker's delivery
		f.lose(t, r.ID, 1)
		f.worker(t, "w", nil)
		if err := f.reconciler().Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		p := f.exec.next(t)
		if p.lease.Attempt != 2 {
			t.Errorf("attempt %d", p.lease.Attempt)
		}
		p.end(experiment.Finished)
		f.wants(t, r.ID, experiment.Finished, 2, "")
	})
}

// A worker took the delivery and hangs or died before it took the lease.
func TestAbandonedDelivery(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, f *fixture) {
		r := f.run(t)
		hangs, release := make(chan struct{}), make(chan struct{})
		f.st.set(func(s *faulty) {
			s.acquire = func(ctx context.Context, w experiment.Worker) error {
				if w.ID != "hangs" {
					return nil
				}
				close(hangs)
				<-release
				return errDown
			}
		})
		f.worker(t, "hangs", nil)
		t.Cleanup(func() { close(release) })
		f.enqueue(t, r)
		wait(t, "delivery to the worker that hangs", hangs)
		f.worker(t, "w", nil)
		rec := f.reconciler()
		for range 2 {
			if err := rec.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		p := f.exec.next(t)
		if p.lease.WorkerID != "w" {
			t.Errorf("executed by %s", p.lease.WorkerID)
		}
		p.end(experiment.Finished)
		f.wants(t, r.ID, experiment.Finished, 1, "")
	})
}

func TestSilentWorkersAreForgotten(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "")
	now := time.Now()
	for id, age := range map[string]time.Duration{"old": forgetWorker + time.Second, "new": forgetWorker - time.Second} {
		if err := f.st.SaveWorker(t.Context(), experiment.Worker{ID: id, SeenAt: now.Add(-age)}); err != nil {
			t.Fatal(err)
		}
	}
	rec := NewReconciler(ReconcilerConfig{Store: f.st, Enqueuer: NewEnqueuer(f.rc), Logger: quiet, Now: func() time.Time { return now }})
	if err := rec.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	ws, err := f.st.Workers(t.Context())
	if err != nil || len(ws) != 1 || ws[0].ID != "new" {
		t.Errorf("workers %+v, %v", ws, err)
	}
}

func TestInspector(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, f *fixture) {
		a, b := f.run(t), f.run(t)
		for range 3 { // once is enough
			f.enqueue(t, a)
			f.enqueue(t, b)
		}
		ins := NewInspector(f.rc)
		qs, err := ins.Queues(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, q := range qs {
			if q.Queue == f.queue {
				found = true
				if q.Pending != 2 || q.Active != 0 || q.Retry != 0 || q.Paused {
					t.Errorf("queue %+v", q)
				}
			}
		}
		if !found {
			t.Errorf("queue %s is not listed in %v", f.queue, qs)
		}
		d, err := ins.Lookup(t.Context(), f.queue, taskID(b.ID, 0, 0))
		if err != nil || d.RunID != b.ID || d.State != "pending" || d.Queue != f.queue || d.Attempt != 0 {
			t.Errorf("lookup %+v, %v", d, err)
		}
		list, err := ins.Find(t.Context(), a.ID)
		if err != nil {
			t.Fatal(err)
		}
		mine := 0
		for _, d := range list {
			if d.Queue == f.queue && d.ID == taskID(a.ID, 0, 0) {
				mine++
			}
		}
		if mine != 1 {
			t.Errorf("found %+v", list)
		}
		e := NewEnqueuer(f.rc)
		for range 2 {
			if err := e.Remove(b); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ins.Lookup(t.Context(), f.queue, taskID(b.ID, 0, 0)); errs.CodeOf(err) != errs.NotFound {
			t.Errorf("removed delivery: %v", err)
		}
		if _, err := ins.Lookup(t.Context(), "nowhere", "x"); errs.CodeOf(err) != errs.NotFound {
			t.Errorf("unknown queue: %v", err)
		}
		if err := e.Enqueue(t.Context(), experiment.Run{ID: 1}); errs.CodeOf(err) != errs.Invalid {
			t.Errorf("a run without a queue: %v", err)
		}
	})
}

// A delivery that was given up for good does not stand in the way.
func TestArchivedDeliveryIsReplaced(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, f *fixture) {
		r := f.run(t)
		f.enqueue(t, r)
		e := NewEnqueuer(f.rc)
		if err := e.ins.ArchiveTask(f.queue, taskID(r.ID, 0, 0)); err != nil {
			t.Fatal(err)
		}
		f.enqueue(t, r)
		d, err := NewInspector(f.rc).Lookup(t.Context(), f.queue, taskID(r.ID, 0, 0))
		if err != nil || d.State != "pending" {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

func FuzzParseDelivery(f *testing.F) {
	for _, s := range []string{`{"run":1,"attempt":0}`, `{"run":-1}`, `{}`, `[]`, ``, `{"run":1e99}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := parseDelivery(b)
		if err == nil && (d.RunID <= 0 || d.Attempt < 0) {
			t.Errorf("%q gives %+v", b, d)
		}
		if err != nil && errs.CodeOf(err) != errs.Invalid {
			t.Errorf("%q: %v", b, err)
		}
	})
}
