package live

import (
	"context"
	"slices"
	"sync"
	"time"

	"agentrl/internal/errs"
)

const (
	queueCap  = 256              // frames that wait for one client
	stuck     = 15 * time.Second // a client that takes nothing for so long is closed
	maxTopics = 256              // subscriptions of one client
)

// Sink is one connected page. Write may block up to the connection's own deadline; an error detaches the client. Close
// is called once, from any goroutine, when the hub gives the client up or the client is closed; it must end a Write in
// progress.
type Sink interface {
	Write(f *Frame) error
	Close(reason string)
}

// Client is one attached sink with its subscriptions and its bounded queue. Safe for concurrent use.
type Client struct {
	hub  *Hub
	sink Sink
	wake chan struct{}
	gone chan struct{}

	mu       sync.Mutex
	queue    []*Frame
	writing  bool
	progress time.Time // when a frame was last taken, or when the queue last began to fill
	topics   map[string]*topic
	closed   bool
}

// Subscribe sends everything that follows cursor on topic, in order. FromNow sends no past but one ready message whose
// seq is the cursor to come back with; 0 begins with the first message of the topic, if it still exists. Where what follows the
// cursor is not known any more, one resync comes first: the page then asks for the present state over HTTP, whose
// answer names the seq it may go on from; deltas after the resync keep coming. Subscribing again replaces the cursor.
// Whether the client may see the topic is the caller's to decide.
func (c *Client) Subscribe(ctx context.Context, name string, cursor int64) error {
	if name == "" || len(name) > maxTopic {
		return errs.Field("topic", "has %d bytes; allowed are 1 to %d", len(name), maxTopic)
	}
	if cursor < FromNow {
		return errs.Field("cursor", "is %d; allowed are a seq, 0 for all there is, or -1 for no past", cursor)
	}
	c.mu.Lock()
	n, again := len(c.topics), c.topics[name] != nil
	c.mu.Unlock()
	if n >= maxTopics && !again {
		return errs.New(errs.RateLimited, "a page may follow at most %d topics at once", maxTopics)
	}
	for {
		t := c.hub.topic(name)
		dead, err := t.join(ctx, c, cursor)
		if dead {
			continue
		}
		c.hub.collect(t) // nobody may have joined: the client was closed, or Redis did not answer
		if err != nil {
			return errs.Wrap(errs.Unavailable, err, "live updates are not available at the moment")
		}
		return nil
	}
}

// Unsubscribe ends a subscription and drops what waits of it. Unknown topics are no error.
func (c *Client) Unsubscribe(name string) {
	c.mu.Lock()
	t := c.topics[name]
	delete(c.topics, name)
	c.forget(name)
	c.mu.Unlock()
	if t != nil {
		t.leave(c)
		c.hub.collect(t)
	}
}

// Topics lists the subscriptions by name.
func (c *Client) Topics() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]string, 0, len(c.topics))
	for t := range c.topics {
		out = append(out, t)
	}
	slices.Sort(out)
	return out
}

// Send queues a frame of the caller's own, such as an error or a pong. A client whose queue is full is closed.
func (c *Client) Send(f *Frame) {
	c.mu.Lock()
	full := len(c.queue) >= queueCap
	if !full {
		c.put(f)
	}
	c.mu.Unlock()
	if full {
		c.close("too many messages wait")
	}
}

// Close detaches the client and closes its sink.
func (c *Client) Close() { c.close("closed") }

func (c *Client) close(reason string) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.closed = true
	topics := c.topics
	c.topics, c.queue = nil, nil
	close(c.gone)
	c.mu.Unlock()
	c.sink.Close(reason)
	for _, t := range topics {
		t.leave(c)
		c.hub.collect(t)
	}
	c.hub.detach(c)
}

// push queues a frame of a subscription. When the queue is full, what waits of one topic is dropped for one resync: of
// this topic if it has any waiting, else of the one that has most.
func (c *Client) push(f *Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.topics[f.Topic] == nil {
		return
	}
	if len(c.queue) < queueCap {
		c.put(f)
		return
	}
	count := map[string]int{}
	for _, q := range c.queue {
		count[q.Topic]++
	}
	victim := f.Topic
	if count[victim] == 0 {
		for t, n := range count {
			if t != "" && (victim == f.Topic || n > count[victim]) {
				victim = t
			}
		}
	}
	newest := f.Seq
	if victim != f.Topic {
		newest = 0
		for _, q := range c.queue {
			if q.Topic == victim {
				newest = max(newest, q.Seq)
			}
		}
	}
	dropped := c.forget(victim)
	c.hub.dropped.Add(int64(dropped))
	c.hub.resyncs.Add(1)
	if victim == f.Topic {
		c.hub.dropped.Add(1)
		c.put(frameOf(victim, f.Seq, Resync, ""))
		if f.Kind == End {
			c.put(f)
		}
		return
	}
	c.put(frameOf(victim, newest, Resync, ""))
	c.put(f)
}

// forget removes the waiting frames of a topic. c.mu is held.
func (c *Client) forget(topic string) int {
	n := len(c.queue)
	c.queue = slices.DeleteFunc(c.queue, func(f *Frame) bool { return f.Topic == topic })
	return n - len(c.queue)
}

// put appends to the queue and wakes the writer. c.mu is held.
func (c *Client) put(f *Frame) {
	if c.closed {
		return
	}
	if len(c.queue) == 0 && !c.writing {
		c.progress = c.hub.now()
	}
	c.queue = append(c.queue, f)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run hands frames to the sink until the client is closed.
func (c *Client) run() {
	for {
		select {
		case <-c.gone:
			return
		case <-c.wake:
		}
		for {
			c.mu.Lock()
			c.writing = false
			if c.closed || len(c.queue) == 0 {
				c.mu.Unlock()
				break
			}
			f := c.queue[0]
			c.queue[0] = nil
			c.queue = c.queue[1:]
			c.writing = true
			c.progress = c.hub.now()
			c.mu.Unlock()
			if err := c.sink.Write(f); err != nil {
				c.close("write failed")
				return
			}
			c.hub.sent.Add(1)
		}
	}
}

// isStuck reports whether the sink has taken nothing for too long.
func (c *Client) isStuck(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.closed && (c.writing || len(c.queue) > 0) && now.Sub(c.progress) > stuck
}
