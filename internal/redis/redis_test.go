package redis_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"agentrl/internal/errs"
	"agentrl/internal/redis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func open(t *testing.T, url string) *redis.Client {
	t.Helper()
	c, err := redis.Open(t.Context(), url, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 { // closing twice is no error
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

func TestEmbeddedExpiresKeys(t *testing.T) {
	t.Parallel()
	c := open(t, "")
	if !c.Embedded() {
		t.Error("not embedded")
	}
	sub := c.Redis().Subscribe(t.Context(), "never")
	defer func() { _ = sub.Close() }()
	if err := c.Redis().Set(t.Context(), "k", "v", 200*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	if v := c.Redis().Get(t.Context(), "k").Val(); v != "v" {
		t.Fatalf("value %q", v)
	}
	// A blocking read of a list that stays empty is the wait; the key is gone when the clock has moved on.
	for c.Redis().Exists(t.Context(), "k").Val() == 1 {
		if err := c.Redis().BLPop(t.Context(), time.Second, "empty").Err(); err != goredis.Nil {
			t.Fatal(err)
		}
	}
}

func TestEmbeddedAsksForThePassword(t *testing.T) {
	t.Parallel()
	c := open(t, "")
	stranger := goredis.NewClient(&goredis.Options{Addr: c.Addr(), DisableIdentity: true, Protocol: 2})
	defer func() { _ = stranger.Close() }()
	if err := stranger.Get(t.Context(), "k").Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("a stranger was let in: %v", err)
	}
	if !strings.HasPrefix(c.Addr(), "127.0.0.1:") {
		t.Errorf("listens on %s", c.Addr())
	}
}

func TestAsynqReachesTheSameServer(t *testing.T) {
	t.Parallel()
	c := open(t, "")
	q := asynq.NewClient(c.Asynq())
	defer func() { _ = q.Close() }()
	if _, err := q.Enqueue(asynq.NewTask("t", nil), asynq.Queue("q1")); err != nil {
		t.Fatal(err)
	}
	names, err := asynq.NewInspectorFromRedisClient(c.Redis()).Queues()
	if err != nil || len(names) != 1 || names[0] != "q1" {
		t.Errorf("queues %v, %v", names, err)
	}
}

func TestTwoEmbeddedServersAreApart(t *testing.T) {
	t.Parallel()
	a, b := open(t, ""), open(t, "")
	if err := a.Redis().Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if n := b.Redis().Exists(t.Context(), "k").Val(); n != 0 {
		t.Error("two embedded servers share keys")
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for url, code := range map[string]errs.Code{
		"localhost:6379":                        errs.Invalid,
		"http://u:planted@h":                    errs.Invalid,
		"redis://u:planted@127.0.0.1:99999/0":   errs.Unavailable,
		"redis://u:planted@127.0.0.1:1/0":       errs.Unavailable,
		"redis://u:planted@127.0.0.1:1/planted": errs.Invalid,
	} {
		_, err := redis.Open(ctx, url, logger)
		if errs.CodeOf(err) != code {
			t.Errorf("%s: %v", url, err)
		}
		if err != nil && strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: the error shows the password: %v", url, err)
		}
	}
	if strings.Contains(log.String(), "planted") {
		t.Errorf("the log shows a password: %s", log.String())
	}
}

func TestClosedClient(t *testing.T) {
	t.Parallel()
	c := open(t, "")
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()); errs.CodeOf(err) != errs.Unavailable {
		t.Errorf("ping after close: %v", err)
	}
}

func TestExternal(t *testing.T) {
	t.Parallel()
	url := os.Getenv("AGENTRL_TEST_REDIS")
	if url == "" {
		t.Log("no real Redis is tested: AGENTRL_TEST_REDIS is not set to its URL")
		return
	}
	c := open(t, url)
	if c.Embedded() {
		t.Error("embedded")
	}
	if err := c.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	q := asynq.NewInspector(c.Asynq())
	defer func() { _ = q.Close() }()
	if _, err := q.Queues(); err != nil {
		t.Error(err)
	}
}
