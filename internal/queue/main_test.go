package queue

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentrl/internal/experiment"
	"agentrl/internal/live"
	"agentrl/internal/redis"
	"agentrl/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// servers runs a test on the embedded Redis and, where AGENTRL_TEST_REDIS names one, on a real one.
func servers(t *testing.T, f func(t *testing.T, fx *fixture)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		f(t, newFixture(t, ""))
	})
	if url := os.Getenv("AGENTRL_TEST_REDIS"); url != "" {
		t.Run("external", func(t *testing.T) {
			t.Parallel()
			f(t, newFixture(t, url))
		})
	}
}

// fixture is a database and a Redis with a queue name of its own.
type fixture struct {
	st    *faulty
	rc    *redis.Client
	queue string
	exec  *stage
	news  *news
}

func newFixture(t *testing.T, url string) *fixture {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{Dir: t.TempDir(), URL: filepath.Join(t.TempDir(), "q.db"), Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	rc, err := redis.Open(t.Context(), url, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rc.Close() })
	return &fixture{st: &faulty{Store: st}, rc: rc, queue: "q" + strings.ToLower(rand.Text()), exec: newStage(), news: newNews()}
}

// run makes a queued run.
func (f *fixture) run(t *testing.T) experiment.Run {
	t.Helper()
	e, err := f.st.ExperimentByName(t.Context(), "e")
	if err != nil {
		if e, err = f.st.CreateExperiment(t.Context(), experiment.Experiment{Name: "e"}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := f.st.CreateRun(t.Context(), experiment.Run{ExperimentID: e.ID, Name: "r", Queue: f.queue, ConfigYAML: "name: r"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// lose gives a run to a worker that died an hour before now, n times.
func (f *fixture) lose(t *testing.T, id int64, n int) {
	t.Helper()
	at := time.Now().Add(-time.Duration(n+1) * time.Hour)
	for range n {
		if _, _, err := f.st.Acquire(t.Context(), id, experiment.Worker{ID: "dead"}, at, time.Second); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Hour)
	}
}

func (f *fixture) enqueue(t *testing.T, r experiment.Run) {
	t.Helper()
	if err := NewEnqueuer(f.rc).Enqueue(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) reconciler() *Reconciler {
	return NewReconciler(ReconcilerConfig{Store: f.st, Enqueuer: NewEnqueuer(f.rc), Logger: quiet})
}

// worker starts a worker; change may edit its configuration.
func (f *fixture) worker(t *testing.T, id string, change func(c *WorkerConfig)) *Worker {
	t.Helper()
	c := WorkerConfig{Redis: f.rc, Store: f.st, Executor: f.exec, Live: f.news, Logger: quiet, LeaseTTL: 8 * time.Second, RenewEvery: 50 * time.Millisecond,
		HeartbeatEvery: 100 * time.Millisecond, Info: experiment.Worker{ID: id, Queues: []string{f.queue}, Slots: 1}}
	if change != nil {
		change(&c)
	}
	w, err := NewWorker(c)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // idempotent
		if err := w.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // whatever still runs is cancelled
		for range 2 {
			_ = w.Stop(ctx)
		}
	})
	return w
}

// wants waits until the run's state was told and compares the row.
func (f *fixture) wants(t *testing.T, id int64, s experiment.State, attempt int, reason string) {
	t.Helper()
	f.news.wait(t, strconv.FormatInt(id, 10), string(s))
	r, err := f.st.Run(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if r.State != s || r.Attempt != attempt || !strings.Contains(r.Reason, reason) {
		t.Errorf("run is %s after attempt %d because %q, want %s, %d, %q", r.State, r.Attempt, r.Reason, s, attempt, reason)
	}
}

// faulty is the store with faults to order.
type faulty struct {
	*store.Store
	mu       sync.Mutex
	down     bool
	fenced   bool
	releases int
	acquire  func(ctx context.Context, w experiment.Worker) error
}

var errDown = errors.New("connection refused")

func (f *faulty) set(change func(f *faulty)) {
	f.mu.Lock()
	change(f)
	f.mu.Unlock()
}

func (f *faulty) fault() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return errDown
	}
	return nil
}

func (f *faulty) Acquire(ctx context.Context, id int64, w experiment.Worker, now time.Time, ttl time.Duration) (experiment.Run, experiment.Lease, error) {
	f.mu.Lock()
	hook := f.acquire
	f.mu.Unlock()
	if hook != nil {
		if err := hook(ctx, w); err != nil {
			return experiment.Run{}, experiment.Lease{}, err
		}
	}
	return f.Store.Acquire(ctx, id, w, now, ttl)
}

func (f *faulty) Renew(ctx context.Context, l experiment.Lease, now time.Time, ttl time.Duration) (experiment.Signal, error) {
	if err := f.fault(); err != nil {
		return "", err
	}
	f.mu.Lock()
	fenced := f.fenced
	f.mu.Unlock()
	if fenced {
		return "", experiment.ErrFenced
	}
	return f.Store.Renew(ctx, l, now, ttl)
}

func (f *faulty) Release(ctx context.Context, l experiment.Lease, o experiment.Outcome, now time.Time) error {
	f.set(func(f *faulty) { f.releases++ })
	if err := f.fault(); err != nil {
		return err
	}
	return f.Store.Release(ctx, l, o, now)
}

// stage is an executor that the test plays: every execution is handed out and waits for its outcome.
type stage struct{ started chan *play }

type play struct {
	ctx    context.Context
	run    experiment.Run
	lease  experiment.Lease
	stop   <-chan struct{}
	answer chan experiment.Outcome
}

func newStage() *stage { return &stage{make(chan *play, 100)} }

func (s *stage) Execute(ctx context.Context, run experiment.Run, lease experiment.Lease, stop <-chan struct{}) experiment.Outcome {
	p := &play{ctx, run, lease, stop, make(chan experiment.Outcome, 1)}
	s.started <- p
	return <-p.answer
}

func (s *stage) next(t *testing.T) *play {
	t.Helper()
	select {
	case p := <-s.started:
		return p
	case <-time.After(20 * time.Second):
		t.Fatal("no run was executed")
		return nil
	}
}

func (p *play) end(s experiment.State) { p.answer <- experiment.Outcome{State: s} }

func wait(t *testing.T, what string, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(20 * time.Second):
		t.Fatalf("no %s", what)
	}
}

// news is a publisher that remembers what the lists were told.
type news struct {
	mu   sync.Mutex
	cond chan struct{}
	told map[string]int
}

func newNews() *news { return &news{cond: make(chan struct{}), told: map[string]int{}} }

func (n *news) Publish(_ context.Context, topic string, _ live.Kind, items ...any) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, i := range items {
		if c, ok := i.(live.Changed); ok && topic == live.RunsTopic {
			n.told[c.ID+" "+c.State]++
		}
	}
	close(n.cond)
	n.cond = make(chan struct{})
	return nil
}

func (n *news) wait(t *testing.T, id, state string) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		n.mu.Lock()
		ok, ch := n.told[id+" "+state] > 0, n.cond
		n.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-ch:
		case <-limit:
			n.mu.Lock()
			defer n.mu.Unlock()
			t.Fatalf("run %s was never told %s: %v", id, state, n.told)
		}
	}
}
