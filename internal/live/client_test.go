package live

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentrl/internal/errs"
)

// gate is a sink whose writes wait.
type gate struct {
	page
	entered chan struct{} // one value per write that began
	open    chan struct{}
	gone    chan struct{}
}

func newGate() *gate {
	return &gate{page: page{changed: make(chan struct{})}, entered: make(chan struct{}, 2*queueCap), open: make(chan struct{}), gone: make(chan struct{})}
}

func (g *gate) Write(f *Frame) error {
	g.entered <- struct{}{}
	select {
	case <-g.open:
		return g.page.Write(f)
	case <-g.gone:
		return errors.New("closed")
	}
}

func (g *gate) Close(reason string) {
	g.page.Close(reason)
	close(g.gone)
}

func delta(topic string, seq int64) *Frame {
	return frameOf(topic, seq, Delta, fmt.Sprintf("[%d]", seq))
}

// attach gives a client that follows topics without Redis.
func attach(h *Hub, s Sink, topics ...string) *Client {
	c := h.Attach(s)
	c.mu.Lock()
	for _, t := range topics {
		c.topics[t] = h.topic(t)
	}
	c.mu.Unlock()
	return c
}

func TestFullQueueGivesOneResync(t *testing.T) {
	t.Parallel()
	h := NewHub(nil, quiet)
	defer h.Stop()
	g := newGate()
	c := attach(h, g, "busy", "calm")
	c.push(delta("busy", 1))
	<-g.entered
	c.push(delta("calm", 7))
	for i := int64(2); i <= queueCap; i++ {
		c.push(delta("busy", i))
	}
	if h.dropped.Load() != 0 {
		t.Fatal("dropped before the queue was full")
	}
	c.push(delta("busy", 1000))
	c.push(delta("busy", 1001))
	if d, r := h.dropped.Load(), h.resyncs.Load(); d != queueCap || r != 1 {
		t.Errorf("dropped %d and %d resyncs, want %d and 1", d, r, queueCap)
	}
	close(g.open)
	g.wait(t, "what is left", func(p *page) bool { return p.seq == 1001 })
	if len(g.items) != 3 || g.resyncs != 1 || g.closed != "" { // 1, 7 and 1001
		t.Errorf("items %v, %d resyncs, closed %q", g.items, g.resyncs, g.closed)
	}
}

func TestFullQueueSparesOtherTopics(t *testing.T) {
	t.Parallel()
	h := NewHub(nil, quiet)
	defer h.Stop()
	g := newGate()
	c := attach(h, g, "busy", "calm")
	c.push(delta("busy", 1))
	<-g.entered
	for i := int64(2); i <= queueCap+1; i++ {
		c.push(delta("busy", i))
	}
	c.push(delta("calm", 5000))
	c.mu.Lock()
	if len(c.queue) != 2 || c.queue[0].Kind != Resync || c.queue[0].Topic != "busy" || c.queue[0].Seq != queueCap+1 || c.queue[1].Seq != 5000 {
		t.Errorf("queue after overflow: %d frames, first %s", len(c.queue), c.queue[0].Bytes)
	}
	c.mu.Unlock()
}

func TestStuckClientIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := NewHub(nil, quiet)
		stuckSink, fine := newGate(), newPage(0)
		a, b := attach(h, stuckSink, "x"), attach(h, fine, "x")
		a.push(delta("x", 1))
		b.push(delta("x", 1))
		synctest.Wait()
		time.Sleep(stuck)
		h.closeStuck()
		if stuckSink.closed != "" {
			t.Fatal("closed too early")
		}
		time.Sleep(time.Second)
		h.closeStuck()
		synctest.Wait()
		if stuckSink.closed == "" || fine.closed != "" || h.Stats().SlowClosed != 1 {
			t.Errorf("stuck %q, healthy %q, %+v", stuckSink.closed, fine.closed, h.Stats())
		}
		h.Stop()
		if fine.closed == "" {
			t.Error("stop left a client open")
		}
		if late := newPage(0); h.Attach(late) == nil || late.closed == "" {
			t.Error("a stopped hub took a client")
		}
	})
}

func TestSubscribeRefuses(t *testing.T) {
	t.Parallel()
	h := NewHub(openRedis(t, "").Redis(), quiet)
	defer h.Stop()
	c := h.Attach(newPage(0))
	for _, tc := range []struct {
		topic  string
		cursor int64
	}{{"", 0}, {strings.Repeat("x", maxTopic+1), 0}, {"x", -2}} {
		if err := c.Subscribe(t.Context(), tc.topic, tc.cursor); errs.CodeOf(err) != errs.Invalid {
			t.Errorf("%q at %d: %v", tc.topic, tc.cursor, err)
		}
	}
	for i := range maxTopics {
		if err := c.Subscribe(t.Context(), fmt.Sprint(i), FromNow); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Subscribe(t.Context(), "one more", FromNow); errs.CodeOf(err) != errs.RateLimited {
		t.Errorf("too many topics: %v", err)
	}
	if err := c.Subscribe(t.Context(), "0", FromNow); err != nil {
		t.Errorf("again: %v", err)
	}
	c.Close()
	if err := c.Subscribe(t.Context(), "late", FromNow); err != nil || h.Stats().Topics != 0 {
		t.Errorf("after close: %v, %+v", err, h.Stats())
	}
}

func TestSendNeverBlocks(t *testing.T) {
	t.Parallel()
	h := NewHub(nil, quiet)
	defer h.Stop()
	g := newGate()
	c := h.Attach(g)
	for i := range queueCap + 2 {
		c.Send(NewFrame(Message{Kind: Error, Seq: int64(i), Data: []byte(`{"code":"x"}`)}))
	}
	g.wait(t, "close", func(p *page) bool { return p.closed != "" })
}
