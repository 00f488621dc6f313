package live

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentrl/internal/redis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// servers runs a test against the embedded Redis and, where AGENTRL_TEST_REDIS names one, a real one. open gives
// another connection to the same server, as another process would have.
func servers(t *testing.T, f func(t *testing.T, open func() *redis.Client)) {
	t.Helper()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		rc := openRedis(t, "")
		f(t, func() *redis.Client { return rc })
	})
	if url := os.Getenv("AGENTRL_TEST_REDIS"); url != "" {
		t.Run("external", func(t *testing.T) {
			t.Parallel()
			f(t, func() *redis.Client { return openRedis(t, url) })
		})
	}
}

func openRedis(t *testing.T, url string) *redis.Client {
	t.Helper()
	rc, err := redis.Open(t.Context(), url, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rc.Close() })
	return rc
}

// page is a sink that applies messages as a browser would: it checks the order and keeps the items and its cursor.
type page struct {
	mu      sync.Mutex
	changed chan struct{}
	seq     int64
	items   []int
	states  []string
	resyncs int
	ended   bool
	closed  string
	bad     error
}

func newPage(seq int64) *page { return &page{seq: seq, changed: make(chan struct{})} }

func (p *page) Write(f *Frame) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != "" {
		return errors.New("closed")
	}
	var m Message
	if err := json.Unmarshal(f.Bytes, &m); err != nil {
		p.bad = err
	}
	if m.Seq <= p.seq && m.Kind != Resync {
		p.bad = errors.New("seq did not increase")
	}
	p.seq = m.Seq
	switch m.Kind {
	case Delta:
		var add []int
		if err := json.Unmarshal(m.Data, &add); err != nil {
			p.bad = err
		}
		p.items = append(p.items, add...)
	case State:
		p.states = append(p.states, string(m.Data))
	case Resync:
		p.resyncs++
	case End:
		p.ended = true
	}
	close(p.changed)
	p.changed = make(chan struct{})
	return nil
}

func (p *page) Close(reason string) {
	p.mu.Lock()
	p.closed = reason
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
}

// wait blocks until ok holds; it is called with the page locked.
func (p *page) wait(t *testing.T, what string, ok func(p *page) bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		p.mu.Lock()
		done, ch := ok(p), p.changed
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-ch:
		case <-limit:
			p.mu.Lock()
			defer p.mu.Unlock()
			t.Fatalf("no %s: %d items, states %v, %d resyncs, ended %v, closed %q", what, len(p.items), p.states, p.resyncs, p.ended, p.closed)
		}
	}
}

func publish(t *testing.T, s *Stream, topic string, kind Kind, items ...any) {
	t.Helper()
	if err := s.Publish(t.Context(), topic, kind, items...); err != nil {
		t.Fatal(err)
	}
}

func flush(t *testing.T, s *Stream) {
	t.Helper()
	if !s.flush(context.WithoutCancel(t.Context())) {
		t.Fatal("flush failed")
	}
}

func poll(t *testing.T, h *Hub) {
	t.Helper()
	if err := h.poll(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func subscribe(t *testing.T, h *Hub, p *page, topic string, cursor int64) *Client {
	t.Helper()
	c := h.Attach(p)
	if err := c.Subscribe(t.Context(), topic, cursor); err != nil {
		t.Fatal(err)
	}
	return c
}

func lastSeq(t *testing.T, h *Hub, topic string) int64 {
	t.Helper()
	n, err := h.LastSeq(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
