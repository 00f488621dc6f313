package queue

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"agentrl/internal/experiment"
	"agentrl/internal/live"
	"agentrl/internal/redis"
)

var errTodo = errors.New("not built yet")

// Enqueuer puts runs into the queue.
type Enqueuer struct{}

// NewEnqueuer uses rc, which it does not close.
func NewEnqueuer(rc *redis.Client) *Enqueuer { return &Enqueuer{} }

// Enqueue delivers run to a worker of run.Queue. Doing it twice is harmless.
func (e *Enqueuer) Enqueue(ctx context.Context, run experiment.Run) error { return errTodo }

// WorkerConfig is what a worker is built from.
type WorkerConfig struct {
	Redis    *redis.Client
	Store    Store
	Executor Executor
	Live     live.Publisher // may be nil
	Logger   *slog.Logger
	Info     experiment.Worker // ID, Host, PID, Queues, Slots, Version, Kernel, CPUs, Memory
	Now      func() time.Time  // nil: time.Now

	LeaseTTL, RenewEvery, HeartbeatEvery, DrainTimeout time.Duration // zero: 12 s, 3 s, 3 s, 2 min
	MaxCrashes                                         int           // zero: 5
}

// Worker takes runs from its queues.
type Worker struct{}

// NewWorker checks the configuration.
func NewWorker(cfg WorkerConfig) (*Worker, error) { return nil, errTodo }

// Start begins to take runs.
func (w *Worker) Start(ctx context.Context) error { return errTodo }

// Stop drains: running runs save and go back to the queue. When ctx ends they are cancelled.
func (w *Worker) Stop(ctx context.Context) error { return errTodo }

// ReconcilerConfig is what a reconciler is built from.
type ReconcilerConfig struct {
	Store    Store
	Enqueuer *Enqueuer
	Logger   *slog.Logger
	Now      func() time.Time // nil: time.Now
	Every    time.Duration    // zero: 5 s
}

// Reconciler queues again what SQL says needs a worker.
type Reconciler struct{}

// NewReconciler does not start it.
func NewReconciler(cfg ReconcilerConfig) *Reconciler { return nil }

// Start reconciles at once and then regularly.
func (r *Reconciler) Start(ctx context.Context) error { return errTodo }

// Stop waits for the pass in progress.
func (r *Reconciler) Stop() {}

// Stats is one queue's sizes in Redis.
type Stats struct {
	Queue                                       string
	Pending, Active, Retry, Scheduled, Archived int
	Paused                                      bool
	Processed, Failed                           int // today
}

// Delivery is one task in Redis.
type Delivery struct {
	ID, Queue, State string
	RunID            int64
	Retried          int
	LastError        string
}

// Inspector looks into the queue for the queue page.
type Inspector struct{}

// NewInspector uses rc, which it does not close.
func NewInspector(rc *redis.Client) *Inspector { return &Inspector{} }

// Queues lists the queues by name.
func (i *Inspector) Queues(ctx context.Context) ([]Stats, error) { return nil, errTodo }

// Find lists the deliveries of a run.
func (i *Inspector) Find(ctx context.Context, runID int64) ([]Delivery, error) { return nil, errTodo }
