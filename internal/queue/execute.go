package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/hibiken/asynq"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/live"
)

// Why an execution was cancelled.
var (
	errCancelAsked = errors.New("cancelled by a user")
	errLeaseOver   = errors.New("the database could not be reached before the lease ran out")
)

// lostReason is what the store writes as the reason of an attempt whose worker stopped renewing.
const lostReason = "its worker stopped answering"

// handle is one delivery. It returns an error only for a fault of a service, so that asynq tries again soon; all other
// deliveries are done with, because the reconciler finds what still needs a worker.
func (w *Worker) handle(_ context.Context, task *asynq.Task) error {
	d, err := parseDelivery(task.Payload())
	if err != nil {
		w.cfg.Logger.Warn("a message in the queue was not understood and is dropped", slog.Any("error", err))
		return nil
	}
	// asynq frees its own slot when it loses touch with Redis while the run goes on, so slots are counted here.
	select {
	case w.slots <- struct{}{}:
	default:
		return nil
	}
	defer func() { <-w.slots }()
	select {
	case <-w.drain:
		return nil
	default:
	}
	return w.take(d.RunID)
}

// take acquires a run's lease and executes the run. A run that another worker holds, or that ended, is left alone.
func (w *Worker) take(runID int64) error {
	log := w.cfg.Logger.With(slog.Int64("run", runID))
	c, cancel := context.WithTimeout(w.base, w.cfg.LeaseTTL)
	began := w.cfg.Now()
	run, lease, err := w.cfg.Store.Acquire(c, runID, w.Info(), began, w.cfg.LeaseTTL)
	cancel()
	switch code := errs.CodeOf(err); {
	case err == nil:
	case errors.Is(err, experiment.ErrLeased), code == errs.Conflict, code == errs.NotFound:
		log.Debug("a delivery was not needed", slog.Any("reason", err))
		return nil
	default:
		return fmt.Errorf("acquire run %d: %w", runID, err)
	}
	log = log.With(slog.Int("attempt", lease.Attempt))
	w.note(runID, 1)
	defer w.note(runID, -1)
	w.tell(run, string(run.State))
	outcome, write := w.decide(run, lease, began, log)
	if !write {
		log.Warn("the run was lost to another attempt; nothing more is written")
		return nil
	}
	w.release(run, lease, outcome, log)
	return nil
}

// decide executes the run unless its history forbids it, and says how the attempt ended and whether that may be written.
func (w *Worker) decide(run experiment.Run, lease experiment.Lease, began time.Time, log *slog.Logger) (o experiment.Outcome, write bool) {
	switch run.StopRequested { // of a run whose worker died before it could obey
	case "stop":
		return experiment.Outcome{State: experiment.Stopped, Reason: "stopped by a user"}, true
	case "cancel":
		return experiment.Outcome{State: experiment.Cancelled, Reason: "cancelled by a user"}, true
	}
	c, cancel := context.WithTimeout(w.base, w.cfg.RenewEvery)
	attempts, err := w.cfg.Store.Attempts(c, run.ID)
	cancel()
	if err != nil {
		return experiment.Outcome{State: experiment.Queued, Reason: "its attempts could not be read"}, true
	}
	if n := crashes(attempts, lease.Attempt); n >= w.cfg.MaxCrashes {
		reason := fmt.Sprintf("its worker died %d times in a row without progress; look at the worker's log and memory, then resume", n)
		return experiment.Outcome{State: experiment.Failed, Reason: reason}, true
	}
	return w.execute(run, lease, began, log)
}

// crashes counts the attempts before current that were lost in a row without getting further than the one before.
func crashes(attempts []experiment.Attempt, current int) int {
	n := 0
	for i := len(attempts) - 1; i >= 0; i-- {
		a := attempts[i]
		if a.Number >= current {
			continue
		}
		if a.Outcome != experiment.Failed || a.Reason != lostReason {
			break
		}
		n++
		if i > 0 && further(a, attempts[i-1]) {
			break
		}
	}
	return n
}

// further reports whether a began from a later checkpoint than b.
func further(a, b experiment.Attempt) bool {
	if a.StartStep != b.StartStep {
		return a.StartStep > b.StartStep
	}
	return a.StartWarmup > b.StartWarmup
}

// execute runs the executor while the lease is renewed.
func (w *Worker) execute(run experiment.Run, lease experiment.Lease, began time.Time, log *slog.Logger) (o experiment.Outcome, write bool) {
	ctx, cancel := context.WithCancelCause(w.base)
	defer cancel(nil)
	k := &keeper{w: w, lease: lease, log: log, cancel: cancel, stop: make(chan struct{}), until: began.Add(w.cfg.LeaseTTL)}
	keep, done := context.WithCancel(context.WithoutCancel(w.base))
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		k.run(keep)
	}()
	o, panicked := w.guarded(ctx, run, lease, k.stop, log)
	done()
	<-kept
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, experiment.ErrFenced):
		return o, false
	case panicked || o.State == experiment.Finished:
	case errors.Is(cause, errCancelAsked):
		o = experiment.Outcome{State: experiment.Cancelled, Reason: "cancelled by a user"}
	case errors.Is(cause, errLeaseOver):
		o = experiment.Outcome{State: experiment.Queued, Reason: cause.Error()}
	case cause != nil: // the worker could not wait for it to save
		o = experiment.Outcome{State: experiment.Queued, Reason: "its worker stopped before it could save"}
	case o.State == experiment.Stopped && k.asked == "stop" && o.Reason == "":
		o.Reason = "stopped by a user"
	case o.State == experiment.Stopped && k.asked == "" && k.draining:
		o = experiment.Outcome{State: experiment.Queued, Reason: "its worker stopped; it goes on from its checkpoint"}
	}
	return o, true
}

// guarded turns a panic into a failed attempt: another run of the worker must not suffer from it.
func (w *Worker) guarded(ctx context.Context, run experiment.Run, lease experiment.Lease, stop <-chan struct{}, log *slog.Logger) (o experiment.Outcome, panicked bool) {
	defer func() {
		if r := recover(); r != nil {
			log.Error("the run panicked", slog.Any("panic", r), slog.String("stack", string(debug.Stack())))
			o, panicked = experiment.Outcome{State: experiment.Failed, Reason: fmt.Sprintf("internal error: %v; the worker's log has the place", r)}, true
		}
	}()
	return w.cfg.Executor.Execute(ctx, run, lease, stop), false
}

// release writes the outcome. While the database is away it keeps trying for as long as the run would need to be found
// by others; after that the reconciler takes over.
func (w *Worker) release(run experiment.Run, lease experiment.Lease, o experiment.Outcome, log *slog.Logger) {
	limit := 5 * w.cfg.LeaseTTL
	c, cancel := context.WithTimeout(context.WithoutCancel(w.base), limit)
	defer cancel()
	for {
		one, done := context.WithTimeout(c, w.cfg.RenewEvery)
		err := w.cfg.Store.Release(one, lease, o, w.cfg.Now())
		done()
		switch {
		case err == nil:
			log.Info("attempt ended", slog.String("state", string(o.State)), slog.String("reason", o.Reason))
			w.tell(run, string(o.State))
			w.requeue(run, lease, o, log)
			return
		case errors.Is(err, experiment.ErrFenced):
			log.Warn("the run was taken over before its outcome could be written")
			return
		}
		log.Warn("the outcome could not be written; retrying", slog.String("state", string(o.State)), slog.Any("error", err))
		wait := time.NewTimer(w.cfg.RenewEvery)
		select {
		case <-wait.C:
		case <-c.Done():
			wait.Stop()
			log.Error("the outcome was not written; the run goes on when the database is back")
			return
		case <-w.base.Done():
			wait.Stop()
			return
		}
	}
}

// requeue delivers a run that goes on elsewhere at once instead of leaving it to the reconciler.
func (w *Worker) requeue(run experiment.Run, lease experiment.Lease, o experiment.Outcome, log *slog.Logger) {
	if o.State != experiment.Queued {
		return
	}
	c, cancel := context.WithTimeout(context.WithoutCancel(w.base), w.cfg.RenewEvery)
	defer cancel()
	run.Attempt = lease.Attempt
	if err := w.enqueuer.Enqueue(c, run); err != nil {
		log.Debug("the run waits for the reconciler", slog.Any("error", err))
	}
}

// note keeps the list of runs that the worker shows.
func (w *Worker) note(runID int64, n int) {
	w.mu.Lock()
	w.running[runID] += n
	if w.running[runID] <= 0 {
		delete(w.running, runID)
	}
	w.mu.Unlock()
	if err := w.save(context.WithoutCancel(w.base)); err != nil {
		w.cfg.Logger.Debug("the worker's runs could not be written", slog.Any("error", err))
	}
	w.changed(live.WorkersTopic, w.cfg.Info.ID, "")
}

// tell lets the lists know that a run's state changed.
func (w *Worker) tell(run experiment.Run, state string) {
	id := strconv.FormatInt(run.ID, 10)
	w.changed(live.RunsTopic, id, state)
	w.changed(live.QueueTopic, id, state)
}
