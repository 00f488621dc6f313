package live

import (
	"context"
	"sync"
	"time"
)

// maxBacklog bounds the frames of one topic that wait for their turn at four a second; only a topic that keeps changing
// its kind of message gets there.
const maxBacklog = 16

// topic is what the hub knows of a topic that somebody follows.
type topic struct {
	hub  *Hub
	name string

	mu     sync.Mutex
	subs   map[*Client]int64 // seq up to which the client needs nothing
	ready  bool
	dead   bool
	read   int64 // last seq taken from the ring
	sent   int64 // last seq handed to the clients
	buf    []entry
	polled time.Time // when the ring was last looked at
}

// join adds c with what it missed. dead: the topic was collected meanwhile, ask for it again.
func (t *topic) join(ctx context.Context, c *Client, cursor int64) (dead bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.dead {
		return true, nil
	}
	pos, err := t.hub.ring.resume(ctx, t.name, cursor)
	if err != nil {
		return false, err
	}
	if !t.ready {
		t.ready, t.read, t.sent, t.polled = true, pos.last, pos.last, t.hub.now()
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return false, nil
	}
	c.topics[t.name] = t
	c.forget(t.name) // what waits belongs to the cursor that is being replaced
	c.mu.Unlock()
	switch {
	case cursor == FromNow:
		t.subs[c] = pos.last
		c.push(frameOf(t.name, pos.last, Ready, "")) // so that a page that loses its connection now can still go on
	case !pos.ok:
		t.subs[c] = pos.last
		t.hub.resyncs.Add(1)
		c.push(frameOf(t.name, pos.last, Resync, ""))
	default:
		// What the hub has not handed out yet comes with the next frame, cut to this client.
		t.subs[c] = cursor
		past := pos.entries
		for len(past) > 0 && past[len(past)-1].seq > t.sent {
			past = past[:len(past)-1]
		}
		for len(past) > 0 {
			n := prefix(past)
			c.push(join(t.name, past[:n]))
			past = past[n:]
		}
	}
	return false, nil
}

func (t *topic) leave(c *Client) {
	t.mu.Lock()
	delete(t.subs, c)
	t.mu.Unlock()
}

// behind returns the seq to read from and whether h shows that there is more.
func (t *topic) behind(h head, now time.Time) (from int64, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.ready {
		return 0, false
	}
	if h.last <= t.read {
		t.polled = now
		return 0, false
	}
	return t.read, true
}

// take appends entries read after t.read. A hole becomes a resync in its place.
func (t *topic) take(list []entry, h head, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(list) > 0 && list[0].seq <= t.read {
		list = list[1:]
	}
	polled := t.polled
	t.polled = now
	if len(list) == 0 { // the head is newer than a ring that is gone
		if h.last > t.read {
			t.buf = append(t.buf, entry{seq: h.last, kind: Resync})
			t.read = h.last
		}
		return
	}
	first := list[0].seq
	fresh := t.read < h.base && first == h.base+1 && now.Sub(polled) < endTTL // a new ring, and none missed before it
	if first != t.read+1 && !fresh {
		t.buf = append(t.buf, entry{seq: first - 1, kind: Resync})
	}
	t.buf = append(t.buf, list...)
	t.read = list[len(list)-1].seq
}

// reset forgets what the topic knew, because the server lost its memory, and tells everyone to ask again.
func (t *topic) reset(h head, epoch int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ready {
		t.read = max(t.read, h.last, epoch)
		t.buf = []entry{{seq: t.read, kind: Resync}}
	}
}

// emit hands the next frame to everyone, at most one per call.
func (t *topic) emit() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.buf) == 0 {
		return
	}
	n := prefix(t.buf)
	part := t.buf[:n]
	shared := join(t.name, part)
	first, last := part[0].seq, part[n-1].seq
	t.hub.frames.Add(1)
	if shared.Kind == Resync {
		t.hub.resyncs.Add(int64(len(t.subs)))
	}
	for c, floor := range t.subs {
		switch {
		case floor >= last:
		case floor < first:
			c.push(shared)
		default: // joined in the middle
			own := part
			for own[0].seq <= floor {
				own = own[1:]
			}
			c.push(join(t.name, own))
		}
	}
	t.sent = last
	t.buf = t.buf[n:]
	t.collapse()
	if len(t.buf) == 0 {
		t.buf = nil
	}
}

// collapse gives up a backlog that four frames a second cannot work off.
func (t *topic) collapse() {
	rest, frames := t.buf, 0
	for len(rest) > 0 {
		rest = rest[prefix(rest):]
		frames++
	}
	if frames <= maxBacklog {
		return
	}
	last := t.buf[len(t.buf)-1]
	t.hub.dropped.Add(int64(frames))
	if last.kind == End {
		t.buf = []entry{{seq: last.seq - 1, kind: Resync}, last}
		return
	}
	t.buf = []entry{{seq: last.seq, kind: Resync}}
}
