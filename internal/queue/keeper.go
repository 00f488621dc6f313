package queue

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"agentrl/internal/experiment"
)

// keeper renews one lease and passes on what was asked of the run.
type keeper struct {
	w      *Worker
	lease  experiment.Lease
	log    *slog.Logger
	cancel context.CancelCauseFunc
	stop   chan struct{} // closed when the executor shall save and end
	until  time.Time     // end of the lease as far as we know

	// Set by run; read after it returned.
	asked    experiment.Signal
	draining bool
	stopping bool
	failing  bool
}

// run renews until ctx ends, which is when the executor has returned, and ends the execution when the lease is lost.
func (k *keeper) run(ctx context.Context) {
	t := time.NewTicker(k.w.cfg.RenewEvery)
	defer t.Stop()
	drain := k.w.drain
	for {
		select {
		case <-ctx.Done():
			return
		case <-drain:
			drain, k.draining = nil, true
			k.askStop()
			continue
		case <-t.C:
		}
		if !k.renew(ctx) {
			return
		}
	}
}

// renew extends the lease once and reports whether the execution may go on.
func (k *keeper) renew(ctx context.Context) bool {
	cfg := k.w.cfg
	now := cfg.Now()
	c, cancel := context.WithTimeout(ctx, min(cfg.RenewEvery, max(k.until.Sub(now)-cfg.RenewEvery/2, cfg.RenewEvery/4)))
	sig, err := cfg.Store.Renew(c, k.lease, now, cfg.LeaseTTL)
	cancel()
	switch {
	case err == nil:
		k.until = now.Add(cfg.LeaseTTL)
		if k.failing {
			k.log.Info("the lease is renewed again")
		}
		k.failing = false
		k.obey(sig)
		return true
	case errors.Is(err, experiment.ErrFenced):
		k.cancel(experiment.ErrFenced)
		return false
	case ctx.Err() != nil:
		return false
	}
	if !k.failing {
		k.log.Warn("the lease could not be renewed; retrying", slog.Any("error", err))
	}
	k.failing = true
	// One more try must fit before others may take the run: stop a period early, so that two never run it.
	if cfg.Now().Add(cfg.RenewEvery).After(k.until) {
		k.log.Error("the database cannot be reached and the lease runs out; the run stops at its last checkpoint")
		k.cancel(errLeaseOver)
		return false
	}
	return true
}

// obey passes a signal on. After a cancel the lease is still kept until the executor has returned.
func (k *keeper) obey(sig experiment.Signal) {
	switch sig {
	case "stop":
		k.asked = sig
		k.askStop()
	case "cancel":
		k.asked = sig
		k.cancel(errCancelAsked)
	}
}

func (k *keeper) askStop() {
	if !k.stopping {
		k.stopping = true
		close(k.stop)
	}
}
