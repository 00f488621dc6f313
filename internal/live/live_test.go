package live

import (
	crand "crypto/rand"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"agentrl/internal/redis"
)

// Pages come and go at random, always with the cursor of the last message they saw. Each must end with every item
// once and in order.
func TestNoGapNoDuplicate(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, open func() *redis.Client) {
		writer, reader := open(), open()
		for seed := range uint64(6) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			topic := "t" + crand.Text()
			s, h := NewStream(writer.Redis(), quiet), NewHub(reader.Redis(), quiet)
			type viewer struct {
				c *Client
				p *page
			}
			begin := lastSeq(t, h, topic)
			vs := make([]viewer, 5)
			for i := range vs {
				p := newPage(begin)
				vs[i] = viewer{subscribe(t, h, p, topic, begin), p}
			}
			next := 0
			for range 400 {
				switch rnd.IntN(4) {
				case 0:
					for range rnd.IntN(5) + 1 {
						publish(t, s, topic, Delta, next, next+1)
						next += 2
					}
				case 1:
					flush(t, s)
				case 2:
					poll(t, h)
				case 3:
					v := &vs[rnd.IntN(len(vs))]
					v.c.Close()
					old := v.p
					old.mu.Lock()
					v.p = newPage(old.seq)
					v.p.items = slices.Clone(old.items)
					v.p.bad = old.bad
					old.mu.Unlock()
					v.c = subscribe(t, h, v.p, topic, v.p.seq)
				}
			}
			publish(t, s, topic, End)
			flush(t, s)
			poll(t, h)
			poll(t, h)
			poll(t, h)
			want := make([]int, next)
			for i := range want {
				want[i] = i
			}
			for i, v := range vs {
				v.p.wait(t, "end", func(p *page) bool { return p.ended })
				v.p.mu.Lock()
				if v.p.bad != nil || v.p.resyncs != 0 || !slices.Equal(v.p.items, want) {
					t.Errorf("seed %d page %d: %v, %d resyncs, got %d of %d items", seed, i, v.p.bad, v.p.resyncs, len(v.p.items), next)
				}
				v.p.mu.Unlock()
			}
			h.Stop()
			if st := h.Stats(); st.Clients != 0 || st.Topics != 0 || st.Dropped != 0 {
				t.Errorf("seed %d: left behind: %+v", seed, st)
			}
		}
	})
}

func TestTwoProcessesRunning(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, open func() *redis.Client) {
		worker, web := open(), open()
		topic := "t" + crand.Text()
		s, h := NewStream(worker.Redis(), quiet), NewHub(web.Redis(), quiet)
		for range 2 { // idempotent
			if err := s.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := h.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		defer h.Stop()
		p := newPage(0)
		c := subscribe(t, h, p, topic, lastSeq(t, h, topic))
		for i := range 500 {
			publish(t, s, topic, Delta, i)
		}
		s.Stop() // flushes
		s.Stop()
		p.wait(t, "500 items", func(p *page) bool { return len(p.items) == 500 })
		if got := c.Topics(); !slices.Equal(got, []string{topic}) {
			t.Errorf("topics %v", got)
		}
		c.Unsubscribe(topic)
		c.Unsubscribe(topic)
		if st := h.Stats(); st.Topics != 0 || st.Subscriptions != 0 || st.Clients != 1 {
			t.Errorf("after unsubscribe: %+v", st)
		}
	})
}

func TestCursors(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, open func() *redis.Client) {
		rc := open()
		topic := "t" + crand.Text()
		s, h := NewStream(rc.Redis(), quiet), NewHub(rc.Redis(), quiet)
		defer h.Stop()
		before := lastSeq(t, h, topic)
		for i := range 10 {
			publish(t, s, topic, Delta, i)
			flush(t, s)
		}
		last := lastSeq(t, h, topic)
		if last <= before {
			t.Fatalf("seq went from %d to %d", before, last)
		}
		for _, tc := range []struct {
			name    string
			cursor  int64
			items   int
			resyncs int
		}{
			{"before the first message", before, 10, 0},
			{"in the middle", last - 4, 4, 0},
			{"at the end", last, 0, 0},
			{"from now", FromNow, 0, 0},
			{"of an older memory", 12, 0, 1},
			{"from the beginning", 0, 10, 0},
			{"of the future", last + 1000, 0, 1},
		} {
			p := newPage(0)
			c := subscribe(t, h, p, topic, tc.cursor)
			publish(t, s, topic, Delta, 99)
			flush(t, s)
			poll(t, h)
			p.wait(t, "new item after "+tc.name, func(p *page) bool { return slices.Contains(p.items, 99) })
			c.Close()
			p.mu.Lock()
			old := slices.DeleteFunc(p.items, func(i int) bool { return i == 99 })
			if tc.cursor == 0 { // those of the earlier cases too
				old = old[:min(10, len(old))]
			}
			if len(old) != tc.items || p.resyncs != tc.resyncs {
				t.Errorf("%s: %d items and %d resyncs, want %d and %d", tc.name, len(old), p.resyncs, tc.items, tc.resyncs)
			}
			p.mu.Unlock()
			last++
		}
		all := newPage(0)
		subscribe(t, h, all, topic+"x", 0) // a topic that does not exist yet
		publish(t, s, topic+"x", Delta, 1)
		flush(t, s)
		poll(t, h)
		all.wait(t, "first item", func(p *page) bool { return slices.Equal(p.items, []int{1}) && p.resyncs == 0 })
	})
}

func TestTrimmedRingAsksToResync(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, open func() *redis.Client) {
		rc := open()
		topic := "t" + crand.Text()
		s, h := NewStream(rc.Redis(), quiet), NewHub(rc.Redis(), quiet)
		defer h.Stop()
		publish(t, s, topic, Delta, 1)
		flush(t, s)
		cursor := lastSeq(t, h, topic)
		slow := newPage(0)
		subscribe(t, h, slow, topic, cursor)
		if err := rc.Redis().XTrimMaxLen(t.Context(), ringKey(topic), 0).Err(); err != nil {
			t.Fatal(err)
		}
		publish(t, s, topic, Delta, 2)
		flush(t, s)
		if err := rc.Redis().XTrimMaxLen(t.Context(), ringKey(topic), 0).Err(); err != nil {
			t.Fatal(err)
		}
		publish(t, s, topic, Delta, 3)
		flush(t, s)
		late := newPage(0)
		subscribe(t, h, late, topic, cursor)
		poll(t, h)
		poll(t, h)
		for _, p := range []*page{slow, late} {
			p.wait(t, "resync and item", func(p *page) bool { return p.resyncs > 0 })
		}
		slow.wait(t, "item after the hole", func(p *page) bool { return slices.Equal(p.items, []int{3}) })
		if st := h.Stats(); st.Resyncs < 2 {
			t.Errorf("resyncs not counted: %+v", st)
		}
	})
}

func TestEmptiedServerResyncs(t *testing.T) {
	t.Parallel()
	rc := openRedis(t, "")
	s, h := NewStream(rc.Redis(), quiet), NewHub(rc.Redis(), quiet)
	defer h.Stop()
	publish(t, s, "x", Delta, 1)
	flush(t, s)
	p := newPage(0)
	subscribe(t, h, p, "x", lastSeq(t, h, "x"))
	poll(t, h)
	old := lastSeq(t, h, "x")
	if err := rc.Redis().FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	// The clock must have moved past the old numbers, as it has after any restart.
	for clock := int64(0); clock <= old; {
		now, err := rc.Redis().Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		clock = now.UnixMilli()
	}
	poll(t, h)
	p.wait(t, "resync", func(p *page) bool { return p.resyncs == 1 })
	s2 := NewStream(rc.Redis(), quiet)
	publish(t, s2, "x", Delta, 2)
	flush(t, s2)
	poll(t, h)
	p.wait(t, "item of the new memory", func(p *page) bool { return slices.Equal(p.items, []int{2}) })
	if p.bad != nil {
		t.Error(p.bad)
	}
}

// A batch whose reply was lost is written again by the client library; it must not appear twice.
func TestBatchIsAppendedOnce(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, open func() *redis.Client) {
		rc := open()
		topic := "t" + crand.Text()
		s := NewStream(rc.Redis(), quiet)
		publish(t, s, topic, Delta, 1)
		ws := s.take()
		s.batch = 1
		for range 3 {
			if err := s.write(t.Context(), ws); err != nil {
				t.Fatal(err)
			}
		}
		n, err := rc.Redis().XLen(t.Context(), ringKey(topic)).Result()
		if err != nil || n != 1 {
			t.Errorf("ring holds %d messages (%v), want 1", n, err)
		}
	})
}

func TestRingIsBoundedAndExpires(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, open func() *redis.Client) {
		rc := open()
		topic := "t" + crand.Text()
		s := NewStream(rc.Redis(), quiet)
		big := make([]byte, 1<<20)
		for i := range ringLeast + 5 {
			publish(t, s, topic, State, strconv.Itoa(i)+string(big[:40<<10]))
			flush(t, s)
		}
		if n := rc.Redis().XLen(t.Context(), ringKey(topic)).Val(); n > ringLeast+5 || n < 1 {
			t.Errorf("ring holds %d messages", n)
		}
		if d := rc.Redis().PTTL(t.Context(), headKey(topic)).Val(); d <= endTTL || d > ringTTL {
			t.Errorf("head expires in %v", d)
		}
		publish(t, s, topic, End)
		flush(t, s)
		for _, k := range []string{headKey(topic), ringKey(topic)} {
			if d := rc.Redis().PTTL(t.Context(), k).Val(); d <= 0 || d > endTTL {
				t.Errorf("%s expires in %v after the end", k, d)
			}
		}
	})
}

// A page that subscribed without a cursor and lost its connection before the first message misses nothing.
func TestReadyNamesTheCursor(t *testing.T) {
	t.Parallel()
	rc := openRedis(t, "")
	s, h := NewStream(rc.Redis(), quiet), NewHub(rc.Redis(), quiet)
	defer h.Stop()
	for _, topic := range []string{"new", "old"} {
		if topic == "old" {
			publish(t, s, topic, Delta, 1)
			flush(t, s)
		}
		p := newPage(0)
		c := subscribe(t, h, p, topic, FromNow)
		p.wait(t, "ready", func(p *page) bool { return p.seq > 0 })
		c.Close()
		publish(t, s, topic, Delta, 2)
		flush(t, s)
		again := newPage(p.seq)
		subscribe(t, h, again, topic, p.seq)
		poll(t, h)
		again.wait(t, "what was missed", func(p *page) bool { return slices.Equal(p.items, []int{2}) && p.resyncs == 0 })
	}
}

func TestTrajectoriesAreKeptShortly(t *testing.T) {
	t.Parallel()
	rc := openRedis(t, "")
	s := NewStream(rc.Redis(), quiet)
	topic := TrajectoryTopic("abc")
	publish(t, s, topic, Delta, 1)
	flush(t, s)
	if d := rc.Redis().PTTL(t.Context(), ringKey(topic)).Val(); d <= 0 || d > endTTL {
		t.Errorf("expires in %v", d)
	}
}

func TestRateOfOneTopic(t *testing.T) {
	t.Parallel()
	rc := openRedis(t, "")
	s, h := NewStream(rc.Redis(), quiet), NewHub(rc.Redis(), quiet)
	defer h.Stop()
	p := newPage(0)
	subscribe(t, h, p, "x", FromNow)
	for i := range 50 {
		publish(t, s, "x", Delta, i)
		publish(t, s, "x", State, "s"+strconv.Itoa(i))
		flush(t, s)
	}
	poll(t, h)
	if st := h.Stats(); st.Frames != 1 {
		t.Errorf("one turn gave %d frames", st.Frames)
	}
	poll(t, h)
	p.wait(t, "resync for a topic that cannot be followed", func(p *page) bool { return p.resyncs == 1 })
	publish(t, s, "x", State, "new")
	publish(t, s, "x", State, "newest")
	flush(t, s)
	poll(t, h)
	p.wait(t, "newest state", func(p *page) bool { return slices.Contains(p.states, `"newest"`) })
	if slices.Contains(p.states, `"new"`) {
		t.Error("a replaced state was sent")
	}
}

func TestBenchViewers(t *testing.T) {
	t.Parallel()
	r, err := BenchViewers(t.Context(), 20, 500*time.Millisecond, quiet)
	if err != nil {
		t.Fatal(err)
	}
	if r.Published == 0 || r.Items != r.Published*20 || r.Missing != 0 || r.Resyncs != 0 || r.Dropped != 0 || r.P95 < r.P50 || r.Max < r.P95 {
		t.Errorf("%+v", r)
	}
}
