package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/live"
)

// errStop ends the loop at the next safe point because a stop was asked for.
var errStop = errors.New("a stop was asked for")

// storeError marks that the database could not be written.
type storeError struct{ err error }

func (e *storeError) Error() string { return "the database cannot be written: " + e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

// diskError marks that a checkpoint could not be saved.
type diskError struct{ err error }

func (e *diskError) Error() string { return "the checkpoint cannot be saved: " + e.err.Error() }
func (e *diskError) Unwrap() error { return e.err }

func execute(ctx context.Context, d Deps, run experiment.Run, lease experiment.Lease) Result {
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Log == nil {
		d.Log = slog.New(slog.DiscardHandler)
	}
	if d.Live == nil {
		d.Live = silent{}
	}
	if d.Progress == nil {
		d.Progress = func(Progress) {}
	}
	if d.Hook == nil {
		d.Hook = func(string) {}
	}
	d.Log = d.Log.With("run", run.ID, "attempt", lease.Attempt)
	l := &loop{d: d, run: run, lease: lease, cfg: run.Config, began: d.Now()}
	err := l.guarded(ctx)
	l.close()
	return l.result(ctx, err)
}

// guarded turns a panic into a failed attempt, so that a worker survives its runs.
func (l *loop) guarded(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			l.d.Log.Error("the run broke off", "panic", r, "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error: %v", r)
		}
	}()
	return l.execute(ctx)
}

// result maps how the loop ended to the outcome of the attempt.
func (l *loop) result(ctx context.Context, err error) Result {
	res := Result{Summary: l.summary(), Err: err}
	var store *storeError
	var disk *diskError
	var safe *errs.Error
	switch {
	case err == nil:
		res.Outcome = experiment.Outcome{State: experiment.Finished}
	case errors.Is(err, experiment.ErrFenced):
		res.Err = experiment.ErrFenced
		res.Outcome = experiment.Outcome{State: experiment.Failed, Reason: "another worker took the run over"}
	case errors.Is(err, errStop):
		res.Err = nil
		res.Outcome = experiment.Outcome{State: experiment.Stopped, Reason: "stopped by request"}
	case ctx.Err() != nil:
		res.Err = ctx.Err()
		res.Outcome = experiment.Outcome{State: experiment.Cancelled, Reason: "cancelled"}
	case errors.As(err, &disk):
		reason := "a checkpoint could not be saved"
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			reason = "the disk is full, so no checkpoint could be saved"
		}
		res.Outcome = experiment.Outcome{State: experiment.Stopped, Reason: reason + "; the run can be resumed from " + l.lastCheckpoint()}
	case errors.As(err, &store):
		reason := "the database could not be written"
		if text := err.Error(); errors.Is(err, syscall.ENOSPC) || strings.Contains(text, "disk is full") || strings.Contains(text, "no space left") {
			reason = "the disk is full, so the database could not be written"
		}
		res.Outcome = experiment.Outcome{State: experiment.Stopped, Reason: reason + "; the run can be resumed from " + l.lastCheckpoint()}
	case errors.As(err, &safe):
		reason := safe.Message
		if safe.Field != "" {
			reason = safe.Field + ": " + reason
		}
		res.Outcome = experiment.Outcome{State: experiment.Failed, Reason: reason}
	default:
		res.Outcome = experiment.Outcome{State: experiment.Failed, Reason: "internal error; the log of the worker has the cause"}
	}
	if err != nil && res.Err != nil {
		l.d.Log.Error("the attempt ended", "outcome", res.Outcome.State, "reason", res.Outcome.Reason, "error", err)
	}
	return res
}

func (l *loop) lastCheckpoint() string {
	switch {
	case l.saved == "":
		return "its beginning"
	case l.savedStep > 0:
		return fmt.Sprintf("its last checkpoint at step %d", l.savedStep)
	default:
		return fmt.Sprintf("its last checkpoint at warm-start step %d", l.savedWarmup)
	}
}

func (l *loop) summary() Summary {
	s := l.st
	return Summary{PassAt1Start: s.PassStart, PassAt1End: s.PassEnd, EvalSamples: s.EvalSamples, Level: l.cfg.Env.ALFWorld.Level,
		Constrained: l.cfg.Sampling.Constrained, Parameters: l.caps.Parameters, WallSeconds: s.WallSeconds + l.elapsed(),
		Trajectories: s.Trajectories, Tokens: s.Tokens, Steps: s.Step}
}

// silent is the Publisher of a run without pages.
type silent struct{}

func (silent) Publish(context.Context, string, live.Kind, ...any) error { return nil }

func (l *loop) elapsed() float64 { return l.d.Now().Sub(l.began).Seconds() }

// stopping says whether a stop was asked for.
func (l *loop) stopping() bool {
	select {
	case <-l.d.Stop:
		return true
	default:
		return false
	}
}

// interruptible returns a context for waits that a stop may cut short.
func (l *loop) interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		select {
		case <-l.d.Stop:
			cancel(errStop)
		case <-done:
		case <-ctx.Done():
		}
	}()
	var closed bool
	return ctx, func() {
		if !closed {
			closed = true
			close(done)
		}
		cancel(nil)
	}
}

// interrupted maps the error of an interruptible wait: errStop when a stop cut it short.
func interrupted(ctx context.Context, err error) error {
	if err != nil && errors.Is(context.Cause(ctx), errStop) {
		return errStop
	}
	return err
}

// event writes a line of the run's log; only a lost lease is an error.
func (l *loop) event(ctx context.Context, level, kind, format string, args ...any) error {
	e := experiment.Event{RunID: l.run.ID, Attempt: l.lease.Attempt, At: l.d.Now(), Level: level, Kind: kind, Message: fmt.Sprintf(format, args...)}
	l.d.Log.Info(e.Message, "kind", kind, "level", level)
	if err := l.d.Store.AddEvent(ctx, l.lease, e); err != nil {
		if errors.Is(err, experiment.ErrFenced) {
			return err
		}
		l.d.Log.Warn("an event could not be stored", "error", err)
	}
	l.publish(ctx, live.EventsTopic(l.run.ID), live.Delta, e)
	return nil
}

func (l *loop) publish(ctx context.Context, topic string, kind live.Kind, items ...any) {
	if len(items) == 0 {
		return
	}
	if err := l.d.Live.Publish(ctx, topic, kind, items...); err != nil {
		l.d.Log.Debug("a live message was not delivered", "topic", topic, "error", err)
	}
}

// commit stores one step with a few tries, so that a short absence of the database does not end a run.
func (l *loop) commit(ctx context.Context, c experiment.StepCommit) error {
	l.d.Hook("commit")
	var err error
	for try := range 4 {
		if try > 0 {
			select {
			case <-time.After(l.retryWait << (2 * (try - 1))):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err = l.d.Store.CommitStep(ctx, l.lease, c); err == nil || errors.Is(err, experiment.ErrFenced) || ctx.Err() != nil {
			break
		}
		l.d.Log.Warn("a step could not be stored", "try", try+1, "error", err)
	}
	switch {
	case err == nil:
		l.d.Hook("commit-done")
		l.published(ctx, c)
		return nil
	case errors.Is(err, experiment.ErrFenced), ctx.Err() != nil:
		return err
	default:
		return &storeError{err}
	}
}
