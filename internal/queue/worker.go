package queue

import (
	"context"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/live"
	"agentrl/internal/redis"
)

// queueName is what a worker label may look like.
var queueName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// WorkerConfig is what a worker is built from. Zero durations and counts mean the value in the comment.
type WorkerConfig struct {
	Redis    *redis.Client
	Store    Store
	Executor Executor
	Live     live.Publisher // nil: lists are not told of changes
	Logger   *slog.Logger
	Info     experiment.Worker // ID, Queues and Slots are required; RunIDs, SeenAt and Draining are kept by the worker
	Now      func() time.Time  // time.Now

	LeaseTTL       time.Duration // 12 s; after it another worker may take over
	RenewEvery     time.Duration // 3 s
	HeartbeatEvery time.Duration // 3 s
	DrainTimeout   time.Duration // 2 min, for runs to save when the worker stops
	MaxCrashes     int           // 5 lost attempts in a row without progress, then the run has failed
}

// Worker takes runs from its queues and executes them, as many at once as it has slots.
type Worker struct {
	cfg      WorkerConfig
	enqueuer *Enqueuer
	slots    chan struct{}
	drain    chan struct{} // closed when running runs shall save and go back

	mu      sync.Mutex
	srv     *asynq.Server
	base    context.Context // of all executions; ends when the drain took too long
	abort   context.CancelFunc
	stopHB  context.CancelFunc
	hb      chan struct{}
	running map[int64]int
	stopped chan struct{} // closed when Stop is through
	state   int           // 0 new, 1 started, 2 stopping
}

// NewWorker checks the configuration; Invalid says what is wrong.
func NewWorker(cfg WorkerConfig) (*Worker, error) {
	if cfg.Redis == nil || cfg.Store == nil || cfg.Executor == nil || cfg.Logger == nil {
		return nil, errs.New(errs.Invalid, "a worker needs Redis, a store, an executor and a logger")
	}
	if cfg.Info.ID == "" {
		return nil, errs.Field("id", "a worker needs an id")
	}
	if cfg.Info.Slots < 1 {
		return nil, errs.Field("slots", "a worker needs at least 1 slot, not %d", cfg.Info.Slots)
	}
	if len(cfg.Info.Queues) == 0 {
		return nil, errs.Field("queues", "a worker needs at least one queue")
	}
	for _, q := range cfg.Info.Queues {
		if !queueName.MatchString(q) {
			return nil, errs.Field("queues", "%q is not a queue name; allowed are 1 to 63 small letters, digits, dots, dashes and underscores", q)
		}
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&cfg.LeaseTTL, 12*time.Second)
	def(&cfg.RenewEvery, cfg.LeaseTTL/4)
	def(&cfg.HeartbeatEvery, 3*time.Second)
	def(&cfg.DrainTimeout, 2*time.Minute)
	if cfg.RenewEvery > cfg.LeaseTTL/2 {
		return nil, errs.Field("renew", "a lease of %v must be renewed at least every %v, not every %v", cfg.LeaseTTL, cfg.LeaseTTL/2, cfg.RenewEvery)
	}
	if cfg.MaxCrashes <= 0 {
		cfg.MaxCrashes = 5
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Worker{cfg: cfg, enqueuer: NewEnqueuer(cfg.Redis), slots: make(chan struct{}, cfg.Info.Slots), drain: make(chan struct{}),
		running: map[int64]int{}, stopped: make(chan struct{})}, nil
}

// Start registers the worker and begins to take runs. When ctx ends the executions are cancelled, so pass one that
// outlives the drain and call Stop. Starting twice is no error; a stopped worker does not start again. Unavailable:
// database or Redis do not answer.
func (w *Worker) Start(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.state {
	case 1:
		return nil
	case 2:
		return errs.New(errs.Conflict, "the worker has been stopped")
	}
	if err := w.cfg.Store.SaveWorker(ctx, w.infoLocked()); err != nil {
		return err
	}
	queues := map[string]int{}
	for _, q := range w.cfg.Info.Queues {
		queues[q] = 1
	}
	w.base, w.abort = context.WithCancel(ctx)
	srv := asynq.NewServerFromRedisClient(w.cfg.Redis.Redis(), asynq.Config{
		Concurrency:              w.cfg.Info.Slots,
		Queues:                   queues,
		BaseContext:              func() context.Context { return w.base },
		TaskCheckInterval:        500 * time.Millisecond,
		DelayedTaskCheckInterval: time.Second,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return time.Second },
		ShutdownTimeout:          time.Second, // the runs have ended before it is asked to shut down
		Logger:                   asynqLog{w.cfg.Logger},
		LogLevel:                 asynq.WarnLevel,
	})
	if err := srv.Start(asynq.HandlerFunc(w.handle)); err != nil {
		w.abort()
		return errs.Wrap(errs.Unavailable, err, "the worker could not start to take runs")
	}
	w.srv, w.state = srv, 1
	var hb context.Context
	hb, w.stopHB = context.WithCancel(context.WithoutCancel(ctx))
	w.hb = make(chan struct{})
	go w.heartbeat(hb, w.hb)
	w.cfg.Logger.Info("worker started", slog.String("worker", w.cfg.Info.ID), slog.Any("queues", w.cfg.Info.Queues), slog.Int("slots", w.cfg.Info.Slots))
	w.changed(live.WorkersTopic, w.cfg.Info.ID, "")
	return nil
}

// Stop takes no more runs and lets the running ones save and go back to the queue. When ctx ends, or after the drain
// timeout, they are cancelled and continue elsewhere from their last checkpoint. It returns when all have ended; calling
// it again waits for the same.
func (w *Worker) Stop(ctx context.Context) error {
	w.mu.Lock()
	if w.state != 1 {
		started := w.state == 2
		w.state = 2
		w.mu.Unlock()
		if started {
			<-w.stopped
		} else {
			close(w.stopped)
		}
		return nil
	}
	w.state = 2
	w.mu.Unlock()
	defer close(w.stopped)
	close(w.drain)
	w.srv.Stop()
	limit, cancel := context.WithTimeout(ctx, w.cfg.DrainTimeout)
	defer cancel()
	free := 0
	for free < cap(w.slots) {
		select {
		case w.slots <- struct{}{}:
			free++
			continue
		case <-limit.Done():
		}
		w.cfg.Logger.Warn("runs did not save in time and are cancelled", slog.Int("runs", cap(w.slots)-free))
		w.abort()
		for ; free < cap(w.slots); free++ {
			w.slots <- struct{}{}
		}
	}
	w.srv.Shutdown()
	w.abort()
	w.stopHB()
	<-w.hb
	last, done := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer done()
	err := w.cfg.Store.DeleteWorker(last, w.cfg.Info.ID)
	w.changed(live.WorkersTopic, w.cfg.Info.ID, "gone")
	w.cfg.Logger.Info("worker stopped", slog.String("worker", w.cfg.Info.ID))
	return err
}

// Info is the worker as pages show it.
func (w *Worker) Info() experiment.Worker {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.infoLocked()
}

func (w *Worker) infoLocked() experiment.Worker {
	i := w.cfg.Info
	i.SeenAt = w.cfg.Now()
	if i.StartedAt.IsZero() {
		i.StartedAt = i.SeenAt
		w.cfg.Info.StartedAt = i.SeenAt
	}
	i.RunIDs = slices.Sorted(maps.Keys(w.running))
	i.Draining = w.state == 2
	return i
}

func (w *Worker) heartbeat(ctx context.Context, done chan struct{}) {
	defer close(done)
	t := time.NewTicker(w.cfg.HeartbeatEvery)
	defer t.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		err := w.save(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			w.cfg.Logger.Warn("the worker could not tell the database that it lives", slog.Any("error", err))
		}
		failed = err != nil
	}
}

func (w *Worker) save(ctx context.Context) error {
	c, cancel := context.WithTimeout(ctx, w.cfg.HeartbeatEvery)
	defer cancel()
	return w.cfg.Store.SaveWorker(c, w.Info())
}

// changed tells lists that something is different. Errors do not matter: pages ask again.
func (w *Worker) changed(topic, id, state string) {
	if w.cfg.Live == nil {
		return
	}
	if err := w.cfg.Live.Publish(context.Background(), topic, live.Delta, live.Changed{ID: id, State: state}); err != nil {
		w.cfg.Logger.Debug("live update was not published", slog.Any("error", err))
	}
}
