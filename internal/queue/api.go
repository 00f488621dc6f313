// Package queue delivers runs to workers. The SQL rows are the truth; the queue only carries a run's id, and a lease in
// SQL decides who executes it, so a delivery may be lost or doubled without harm.
package queue

import (
	"context"
	"time"

	"agentrl/internal/experiment"
)

// Store is what workers and the reconciler need of the database. Errors are those of the store: experiment.ErrLeased,
// experiment.ErrFenced, and *errs.Error with Conflict or NotFound.
type Store interface {
	Acquire(ctx context.Context, runID int64, w experiment.Worker, now time.Time, ttl time.Duration) (experiment.Run, experiment.Lease, error)
	Renew(ctx context.Context, l experiment.Lease, now time.Time, ttl time.Duration) (experiment.Signal, error)
	Release(ctx context.Context, l experiment.Lease, o experiment.Outcome, now time.Time) error
	Orphans(ctx context.Context, now time.Time) ([]experiment.Run, error)
	Attempts(ctx context.Context, runID int64) ([]experiment.Attempt, error)
	AddEvent(ctx context.Context, l experiment.Lease, e experiment.Event) error
	SaveWorker(ctx context.Context, w experiment.Worker) error
	Workers(ctx context.Context) ([]experiment.Worker, error)
	DeleteWorker(ctx context.Context, id string) error
}

// Executor trains a run until it ends. It must save and return Stopped soon after stop is closed, and return at once,
// writing nothing more, when ctx ends. A run that ended by itself is Finished, one that cannot go on is Failed with a
// reason. Safe for concurrent use, one call per slot.
type Executor interface {
	Execute(ctx context.Context, run experiment.Run, lease experiment.Lease, stop <-chan struct{}) experiment.Outcome
}

// ExecutorFunc makes a function an Executor.
type ExecutorFunc func(ctx context.Context, run experiment.Run, lease experiment.Lease, stop <-chan struct{}) experiment.Outcome

// Execute calls f.
func (f ExecutorFunc) Execute(ctx context.Context, run experiment.Run, lease experiment.Lease, stop <-chan struct{}) experiment.Outcome {
	return f(ctx, run, lease, stop)
}
