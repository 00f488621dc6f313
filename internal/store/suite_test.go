package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"go.uber.org/goleak"

	"agentrl/internal/auth"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start is the time at which every test's clock stands first.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clock is a time that only tests move.
type clock struct{ at atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.at.Store(start.UnixMicro())
	return c
}

func (c *clock) now() time.Time          { return time.UnixMicro(c.at.Load()).UTC() }
func (c *clock) advance(d time.Duration) { c.at.Add(d.Microseconds()) }

// fixture is a fresh database.
type fixture struct {
	*store.Store
	clock *clock
	url   string
}

// conformance is one test that both dialects must pass.
type conformance struct {
	name string
	run  func(t *testing.T, f fixture)
}

// TestConformance runs every test of the suite on a fresh database per test.
func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		for _, c := range allConformance() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, open(t, filepath.Join(t.TempDir(), "test.db")))
			})
		}
	})
	base := os.Getenv("AGENTRL_TEST_POSTGRES")
	if base == "" {
		t.Log("Postgres is not tested: AGENTRL_TEST_POSTGRES is not set to the postgres:// URL of a database in which schemas may be made")
		return
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		for _, c := range allConformance() {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, open(t, freshSchema(t, base)))
			})
		}
	})
}

func open(t *testing.T, url string) fixture {
	t.Helper()
	c := newClock()
	s, err := store.Open(t.Context(), store.Options{URL: url, Clock: c.now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return fixture{Store: s, clock: c, url: url}
}

var schemas atomic.Int64

// freshSchema makes a schema of the test's own and returns the URL that works in it.
func freshSchema(t *testing.T, base string) string {
	t.Helper()
	db, err := sql.Open("pgx", base)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	name := fmt.Sprintf("agentrl_test_%d_%d", os.Getpid(), schemas.Add(1))
	if _, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		db, err := sql.Open("pgx", base)
		if err != nil {
			t.Error(err)
			return
		}
		defer db.Close()
		if _, err := db.ExecContext(context.Background(), "DROP SCHEMA "+name+" CASCADE"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("search_path", name)
	u.RawQuery = q.Encode()
	return u.String()
}

func allConformance() []conformance {
	var all []conformance
	for _, part := range [][]conformance{userTests(), runTests(), leaseTests(), recordTests(), seriesTests(), savedTests()} {
		all = append(all, part...)
	}
	return all
}

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// got fails the test on an error and returns the value.
func got[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func wantCode(t *testing.T, err error, code errs.Code) {
	t.Helper()
	if err == nil || errs.CodeOf(err) != code {
		t.Fatalf("error %v (%s), want code %s", err, errs.CodeOf(err), code)
	}
}

func (f fixture) user(t *testing.T, email string, role auth.Role) auth.User {
	t.Helper()
	return got(f.CreateUser(t.Context(), auth.User{Email: email, Name: "N", Role: role}))(t)
}

// newRun makes a queued run in an experiment of its own.
func (f fixture) newRun(t *testing.T, name string) experiment.Run {
	t.Helper()
	e, err := f.ExperimentByName(t.Context(), "exp "+name)
	if err != nil {
		e = got(f.CreateExperiment(t.Context(), experiment.Experiment{Name: "exp " + name}))(t)
	}
	c := experiment.Config{Name: name, Seed: 1<<63 + 7, Budget: experiment.Budget{Steps: 300}}
	return got(f.CreateRun(t.Context(), experiment.Run{ExperimentID: e.ID, Name: name, Seed: c.Seed, Queue: "cpu", Config: c, ConfigYAML: "name: " + name}))(t)
}

const ttl = 30 * time.Second

func worker(id string) experiment.Worker {
	return experiment.Worker{ID: id, Host: "host-" + id, PID: 7, Queues: []string{"cpu"}, Slots: 1, Kernel: "avx2"}
}

// acquire takes a run for a worker.
func (f fixture) acquire(t *testing.T, run int64, id string) experiment.Lease {
	t.Helper()
	_, l, err := f.Acquire(t.Context(), run, worker(id), f.clock.now(), ttl)
	must(t, err)
	return l
}

// attempt starts an attempt from a step; an earlier one is let run out first.
func (f fixture) attempt(t *testing.T, run, warmup, step int64) experiment.Lease {
	t.Helper()
	f.clock.advance(2 * ttl)
	l := f.acquire(t, run, "w")
	must(t, f.SetStart(t.Context(), l, warmup, step, ""))
	return l
}
