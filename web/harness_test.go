package web

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"agentrl/internal/auth"
	"agentrl/internal/experiment"
	"agentrl/internal/live"
	"agentrl/internal/redis"
	"agentrl/internal/runfile"
	"agentrl/internal/store"
)

const goodPassword = "three quiet herons walk"

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// world is a server with real parts: SQLite, embedded Redis, accounts of every role.
type world struct {
	t      testing.TB
	store  *store.Store
	auth   *auth.Service
	stream *live.Stream
	srv    *Server
	http   *httptest.Server
	clock  *clock
	users  map[auth.Role]auth.User
	tokens map[auth.Role]string
	enq    *recordingEnqueuer
}

// newWorld has no accounts; base is the base URL, empty for the test server's own address.
func newWorld(t testing.TB, base string) *world {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	w := &world{t: t, clock: &clock{t: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}, users: map[auth.Role]auth.User{}, tokens: map[auth.Role]string{}, enq: &recordingEnqueuer{}}
	var err error
	w.store, err = store.Open(ctx, store.Options{URL: filepath.Join(t.TempDir(), "w.db"), Clock: w.clock.now})
	check(t, err)
	t.Cleanup(func() { _ = w.store.Close() })
	rd, err := redis.Open(ctx, "", quiet())
	check(t, err)
	t.Cleanup(func() { _ = rd.Close() })
	hub := live.NewHub(rd.Redis(), quiet())
	w.stream = live.NewStream(rd.Redis(), quiet())
	check(t, hub.Start(ctx))
	t.Cleanup(hub.Stop)
	check(t, w.stream.Start(ctx))
	t.Cleanup(w.stream.Stop)
	w.auth, err = auth.NewService(w.store, auth.Options{Now: w.clock.now, Hash: &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}})
	check(t, err)
	w.http = httptest.NewUnstartedServer(nil)
	if base == "" {
		base = "http://" + w.http.Listener.Addr().String()
	}
	u, err := url.Parse(base)
	check(t, err)
	w.srv, err = New(Options{Store: w.store, Auth: w.auth, Hub: hub, Publisher: w.stream, Enqueuer: w.enq, BaseURL: u, Version: "test",
		Clock: w.clock.now, Tasks: fixedTasks{"alfworld-train", "alfworld-valid"}})
	check(t, err)
	w.http.Config.Handler = w.srv
	w.http.Start()
	t.Cleanup(w.http.Close)
	t.Cleanup(func() { _ = w.srv.Shutdown(ctx) })
	return w
}

// populated has an account and a token of every role.
func populated(t testing.TB) *world {
	t.Helper()
	w := newWorld(t, "")
	ctx := t.Context()
	cli := auth.Origin{Addr: auth.CommandLine}
	for _, role := range []auth.Role{auth.Admin, auth.Researcher, auth.Annotator, auth.Viewer} {
		u, err := w.auth.CreateUser(ctx, auth.User{}, auth.NewUser{Email: string(role) + "@example.org", Name: "The " + string(role), Password: goodPassword, Role: role}, cli)
		check(t, err)
		w.users[role] = u
		w.tokens[role], _, err = w.auth.CreateToken(ctx, u, "test", role, 0, cli)
		check(t, err)
	}
	return w
}

// session signs a role in and returns its cookie.
func (w *world) session(role auth.Role) *http.Cookie {
	w.t.Helper()
	id, _, err := w.auth.Login(w.t.Context(), string(role)+"@example.org", goodPassword, auth.Origin{Addr: "10.0.0.1"})
	check(w.t, err)
	return &http.Cookie{Name: w.srv.sessionCookie(), Value: id}
}

// call is one request to the server.
type call struct {
	method, path string
	role         auth.Role    // bearer token of this role
	cookie       *http.Cookie // or a session
	body         string
	kind         string // content type; empty: JSON, or a form below the pages
	header       map[string]string
}

// answer is what came back, without following redirects.
type answer struct {
	*http.Response
	text string
}

func (w *world) do(c call) answer {
	w.t.Helper()
	q, err := http.NewRequestWithContext(w.t.Context(), c.method, w.http.URL+c.path, strings.NewReader(c.body))
	check(w.t, err)
	if c.body != "" {
		kind := c.kind
		if kind == "" {
			kind = "application/json"
			if !strings.HasPrefix(c.path, "/api/") {
				kind = "application/x-www-form-urlencoded"
			}
		}
		q.Header.Set("Content-Type", kind)
	}
	if c.role != "" {
		q.Header.Set("Authorization", "Bearer "+w.tokens[c.role])
	}
	if c.cookie != nil {
		q.AddCookie(c.cookie)
	}
	for k, v := range c.header {
		q.Header.Set(k, v)
	}
	client := http.Client{Transport: w.http.Client().Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(q)
	check(w.t, err)
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	check(w.t, err)
	return answer{res, string(b)}
}

// decode reads a JSON answer.
func (a answer) decode(t testing.TB, v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(a.text)))
	if err := d.Decode(v); err != nil {
		t.Fatalf("%v in %s", err, a.text)
	}
}

// want fails unless the status is that, the texts are in the body, and those after "!" are not.
func (a answer) want(t testing.TB, status int, texts ...string) {
	t.Helper()
	if a.StatusCode != status {
		t.Errorf("%s %s: status %d, want %d: %.300s", a.Request.Method, a.Request.URL.Path, a.StatusCode, status, a.text)
	}
	for _, s := range texts {
		if not, ok := strings.CutPrefix(s, "!"); ok {
			if strings.Contains(a.text, not) {
				t.Errorf("%s %s: the body must not contain %q: %.300s", a.Request.Method, a.Request.URL.Path, not, a.text)
			}
		} else if !strings.Contains(a.text, s) {
			t.Errorf("%s %s: the body lacks %q: %.300s", a.Request.Method, a.Request.URL.Path, s, a.text)
		}
	}
}

// run makes a queued run in an experiment.
func (w *world) run(ex, name string) experiment.Run {
	w.t.Helper()
	ctx := w.t.Context()
	e, err := w.store.ExperimentByName(ctx, ex)
	if err != nil {
		e, err = w.store.CreateExperiment(ctx, experiment.Experiment{Name: ex, OwnerID: 1})
		check(w.t, err)
	}
	c := testConfig(name)
	r, err := w.store.CreateRun(ctx, experiment.Run{ExperimentID: e.ID, Experiment: ex, Name: name, OwnerID: 1, State: experiment.Queued,
		Config: c, ConfigYAML: string(runfile.Format(c)), Queue: "default", Seed: c.Seed})
	check(w.t, err)
	return r
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
