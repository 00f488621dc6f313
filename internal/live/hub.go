package live

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"agentrl/internal/errs"
)

const (
	// FromNow as a cursor subscribes without the past.
	FromNow int64 = -1

	pollEvery   = 250 * time.Millisecond // so that no topic gives more than four frames a second
	pollTimeout = 5 * time.Second
	pollCount   = 2000 // entries of one topic read at once
)

// Hub follows the topics that its clients want and fans them out. It reads the rings four times a second, whoever wrote
// them, so nothing is lost with a connection and two processes need nothing but the same Redis. A frame is serialised
// once for everyone. Safe for concurrent use.
type Hub struct {
	ring   ring
	logger *slog.Logger
	now    func() time.Time

	mu      sync.Mutex
	topics  map[string]*topic
	clients map[*Client]struct{}
	cancel  context.CancelFunc
	stopped bool
	wg      sync.WaitGroup

	epoch  int64 // the poller's only
	failed bool  // the poller's only

	frames, sent, resyncs, dropped, slow atomic.Int64
}

// HubStats counts since the start, except Clients, Topics and Subscriptions, which are of now. Frames were serialised,
// Sent written to sinks, Resyncs queued, Dropped given up with them; SlowClosed clients took nothing for 15 s.
type HubStats struct {
	Clients, Topics, Subscriptions             int
	Frames, Sent, Resyncs, Dropped, SlowClosed int64
}

// NewHub does not start it. rdb stays the caller's.
func NewHub(rdb *goredis.Client, logger *slog.Logger) *Hub {
	return &Hub{ring: ring{rdb}, logger: logger, now: time.Now, topics: map[string]*topic{}, clients: map[*Client]struct{}{}}
}

// Start begins to follow topics. Starting twice is no error; a stopped hub does not start again.
func (h *Hub) Start(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return errs.New(errs.Unavailable, "the live hub has been stopped")
	}
	if h.cancel != nil {
		return nil
	}
	ctx, h.cancel = context.WithCancel(ctx)
	h.wg.Add(1)
	go h.run(ctx)
	return nil
}

// Stop closes all clients and waits for their writers. Stopping twice is no error.
func (h *Hub) Stop() {
	h.mu.Lock()
	h.stopped = true
	if h.cancel != nil {
		h.cancel()
	}
	list := make([]*Client, 0, len(h.clients))
	for c := range h.clients {
		list = append(list, c)
	}
	h.mu.Unlock()
	for _, c := range list {
		c.close("the server stops")
	}
	h.wg.Wait()
}

// Attach adds a client and starts its writer. After Stop the sink is closed at once.
func (h *Hub) Attach(s Sink) *Client {
	c := &Client{hub: h, sink: s, wake: make(chan struct{}, 1), gone: make(chan struct{}), topics: map[string]*topic{}}
	h.mu.Lock()
	stopped := h.stopped
	if !stopped {
		h.clients[c] = struct{}{}
		h.wg.Add(1)
	}
	h.mu.Unlock()
	if stopped {
		c.close("the server stops")
		return c
	}
	go func() {
		defer h.wg.Done()
		c.run()
	}()
	return c
}

// LastSeq returns the cursor that continues from now. Read it before querying SQL: then a message may repeat what the
// query already saw, which pages take by key, but none is missed.
func (h *Hub) LastSeq(ctx context.Context, topic string) (int64, error) {
	pos, err := h.ring.resume(ctx, topic, FromNow)
	if err != nil {
		return 0, errs.Wrap(errs.Unavailable, err, "live updates are not available at the moment")
	}
	return pos.last, nil
}

// Stats counts.
func (h *Hub) Stats() HubStats {
	st := HubStats{Frames: h.frames.Load(), Sent: h.sent.Load(), Resyncs: h.resyncs.Load(), Dropped: h.dropped.Load(), SlowClosed: h.slow.Load()}
	h.mu.Lock()
	st.Clients, st.Topics = len(h.clients), len(h.topics)
	list := h.list()
	h.mu.Unlock()
	for _, t := range list {
		t.mu.Lock()
		st.Subscriptions += len(t.subs)
		t.mu.Unlock()
	}
	return st
}

func (h *Hub) run(ctx context.Context) {
	defer h.wg.Done()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		c, cancel := context.WithTimeout(ctx, pollTimeout)
		err := h.poll(c)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !h.failed:
			h.logger.Warn("live updates cannot be read; retrying", slog.Any("error", err))
		case err == nil && h.failed:
			h.logger.Info("live updates are read again")
		}
		h.failed = err != nil
		h.closeStuck()
	}
}

// poll reads what is new on all topics and hands out one frame of each.
func (h *Hub) poll(ctx context.Context) error {
	h.mu.Lock()
	list := h.list()
	h.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = t.name
	}
	epoch, heads, err := h.ring.heads(ctx, names)
	if err == nil && epoch == 0 { // the server was emptied
		if err = h.ring.begin(ctx); err == nil {
			epoch, heads, err = h.ring.heads(ctx, names)
		}
	}
	if err != nil {
		return err
	}
	now := h.now()
	lost := h.epoch != 0 && epoch != h.epoch
	h.epoch = epoch
	var more []*topic
	var moreNames []string
	var from []int64
	var moreHeads []head
	for i, t := range list {
		if lost {
			t.reset(heads[i], epoch)
			continue
		}
		if seq, ok := t.behind(heads[i], now); ok {
			more, moreNames = append(more, t), append(moreNames, t.name)
			from, moreHeads = append(from, seq), append(moreHeads, heads[i])
		}
	}
	if len(more) > 0 {
		got, err := h.ring.after(ctx, moreNames, from, pollCount)
		if err != nil {
			return err
		}
		for i, t := range more {
			t.take(got[i], moreHeads[i], now)
		}
	}
	for _, t := range list {
		t.emit()
	}
	return nil
}

func (h *Hub) closeStuck() {
	now := h.now()
	h.mu.Lock()
	var list []*Client
	for c := range h.clients {
		list = append(list, c)
	}
	h.mu.Unlock()
	for _, c := range list {
		if c.isStuck(now) {
			h.slow.Add(1)
			c.close("the page takes no messages")
		}
	}
}

// list returns the topics; h.mu is held.
func (h *Hub) list() []*topic {
	out := make([]*topic, 0, len(h.topics))
	for _, t := range h.topics {
		out = append(out, t)
	}
	return out
}

func (h *Hub) topic(name string) *topic {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[name]
	if t == nil {
		t = &topic{hub: h, name: name, subs: map[*Client]int64{}}
		h.topics[name] = t
	}
	return t
}

// collect forgets a topic that nobody follows any more.
func (h *Hub) collect(t *topic) {
	t.mu.Lock()
	t.dead = t.dead || len(t.subs) == 0
	dead := t.dead
	t.mu.Unlock()
	if !dead {
		return
	}
	h.mu.Lock()
	if h.topics[t.name] == t {
		delete(h.topics, t.name)
	}
	h.mu.Unlock()
}

func (h *Hub) detach(c *Client) {
	h.mu.Lock()
	delete(h.clients, c)
	h.mu.Unlock()
}
