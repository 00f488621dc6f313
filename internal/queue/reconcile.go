package queue

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"agentrl/internal/experiment"
)

const (
	reconcileEvery = 5 * time.Second  // with the lease, a dead worker's run goes on in well under 30 s
	forgetWorker   = 30 * time.Second // a worker that says nothing for so long is taken off the list
	reconcileLimit = 10 * time.Second // of one pass
)

// ReconcilerConfig is what a reconciler is built from.
type ReconcilerConfig struct {
	Store    Store
	Enqueuer *Enqueuer
	Logger   *slog.Logger
	Now      func() time.Time // nil: time.Now
	Every    time.Duration    // 0: 5 s
}

// Reconciler queues again what SQL says needs a worker: after a restart with an empty embedded Redis, after a lost
// delivery, and when a lease ran out. Any number of processes may run one.
type Reconciler struct {
	cfg ReconcilerConfig

	mu     sync.Mutex
	cancel context.CancelFunc
	done   chan struct{}

	seen   map[int64]sighting // the loop's only
	failed bool               // the loop's only
}

// sighting is a run that needed a worker at the last look. If a worker seems to have its delivery already, that worker
// may have died before it took the lease and would hold the run up for a minute: at the second look the run is delivered
// once more.
type sighting struct {
	attempt int
	active  bool // a worker seemed to have the delivery
	again   int  // further deliveries of this attempt
	told    bool // that its worker was lost
}

// NewReconciler does not start it.
func NewReconciler(cfg ReconcilerConfig) *Reconciler {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Every <= 0 {
		cfg.Every = reconcileEvery
	}
	return &Reconciler{cfg: cfg, seen: map[int64]sighting{}}
}

// Start reconciles at once and then regularly. Starting twice is no error.
func (r *Reconciler) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel != nil {
		return nil
	}
	ctx, r.cancel = context.WithCancel(ctx)
	r.done = make(chan struct{})
	go r.run(ctx, r.done)
	return nil
}

// Stop waits for the pass in progress. Stopping twice is no error.
func (r *Reconciler) Stop() {
	r.mu.Lock()
	cancel, done := r.cancel, r.done
	r.cancel = nil
	r.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}

func (r *Reconciler) run(ctx context.Context, done chan struct{}) {
	defer close(done)
	t := time.NewTicker(r.cfg.Every)
	defer t.Stop()
	for {
		c, cancel := context.WithTimeout(ctx, reconcileLimit)
		err := r.Pass(c)
		cancel()
		if err != nil && !r.failed && ctx.Err() == nil {
			r.cfg.Logger.Warn("queue and database could not be compared; retrying", slog.Any("error", err))
		}
		r.failed = err != nil
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// Pass compares queue and database once. It must not run twice at the same time.
func (r *Reconciler) Pass(ctx context.Context) error {
	now := r.cfg.Now()
	runs, err := r.cfg.Store.Orphans(ctx, now)
	if err != nil {
		return err
	}
	seen := map[int64]sighting{}
	for _, run := range runs {
		s := r.seen[run.ID]
		if s.attempt != run.Attempt {
			s = sighting{attempt: run.Attempt}
		}
		active, err := r.cfg.Enqueuer.deliver(ctx, run, s.again)
		if err == nil && active && s.active {
			s.again++
			active, err = r.cfg.Enqueuer.deliver(ctx, run, s.again)
		}
		if err != nil {
			return err
		}
		s.active = active
		if run.State != experiment.Queued && !s.told {
			s.told = true
			r.cfg.Logger.Info("a worker stopped answering; its run was queued again",
				slog.Int64("run", run.ID), slog.String("worker", run.WorkerID))
		}
		seen[run.ID] = s
	}
	r.seen = seen
	return r.prune(ctx, now)
}

// prune takes workers off the list that stopped without saying so.
func (r *Reconciler) prune(ctx context.Context, now time.Time) error {
	ws, err := r.cfg.Store.Workers(ctx)
	if err != nil {
		return err
	}
	for _, w := range ws {
		if now.Sub(w.SeenAt) > forgetWorker {
			if err := r.cfg.Store.DeleteWorker(ctx, w.ID); err != nil {
				return err
			}
			r.cfg.Logger.Info("a worker that stopped answering was taken off the list", slog.String("worker", w.ID))
		}
	}
	return nil
}
