package live

import (
	"context"
	"crypto/rand"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"agentrl/internal/errs"
)

const (
	flushEvery   = 100 * time.Millisecond // how long messages wait to be joined
	flushTimeout = 5 * time.Second
	batchTopics  = 64      // topics in one script call
	batchBytes   = 4 << 20 // bytes in one script call
	ringBytes    = 8 << 20 // about how much one topic's ring may hold
	ringLeast    = 64      // entries kept of a topic with huge messages
	maxTopic     = 200     // bytes of a topic's name
)

// Stream is the Publisher that writes to Redis. Publish only puts into memory; a background flusher writes ten times a
// second. When Redis cannot follow, the oldest messages of a topic are given up for one resync, and counted. Safe for
// concurrent use.
type Stream struct {
	rdb    *goredis.Client
	logger *slog.Logger
	id     string // names this publisher's batches

	mu      sync.Mutex
	topics  map[string]*pending
	order   []string // topics in order of their first message
	bytes   int
	dropped int64
	cancel  context.CancelFunc
	done    chan struct{}

	wake   chan struct{}
	batch  int64   // number of the batch being written; flusher only
	retry  []write // batch that failed and must go first; flusher only
	failed bool    // the last write failed; flusher only
}

// write is one topic's share of a batch.
type write struct {
	topic string
	ops   []op
}

// NewStream does not start it. rdb stays the caller's.
func NewStream(rdb *goredis.Client, logger *slog.Logger) *Stream {
	return &Stream{rdb: rdb, logger: logger, id: rand.Text(), topics: map[string]*pending{}, wake: make(chan struct{}, 1)}
}

// Start begins to flush. What was published before is kept. Starting twice is no error.
func (s *Stream) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		return nil
	}
	ctx, s.cancel = context.WithCancel(ctx)
	s.done = make(chan struct{})
	go s.run(ctx, s.done)
	return nil
}

// Stop flushes what is pending, once, and ends the flusher. Stopping twice is no error.
func (s *Stream) Stop() {
	s.mu.Lock()
	cancel, done := s.cancel, s.done
	s.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	<-done
	s.mu.Lock()
	s.cancel = nil
	s.mu.Unlock()
}

// Publish implements Publisher. A delta takes one item or more, a state exactly one, the other kinds at most one.
func (s *Stream) Publish(_ context.Context, topic string, kind Kind, items ...any) error {
	if topic == "" || len(topic) > maxTopic {
		return errs.New(errs.Invalid, "a live topic has 1 to %d bytes", maxTopic)
	}
	o, err := encode(topic, kind, items)
	if err != nil {
		return err
	}
	s.mu.Lock()
	p := s.topics[topic]
	if p == nil {
		p = &pending{}
		s.topics[topic] = p
		s.order = append(s.order, topic)
	}
	before := p.bytes
	if p.bytes+len(o.data) > topicBytes || s.bytes+len(o.data) > totalBytes {
		s.dropped += p.overflow() + o.items // the resync stands for these items too
	}
	if p.bytes+len(o.data) <= topicBytes && s.bytes-before+p.bytes+len(o.data) <= totalBytes || o.kind == End {
		p.add(o)
	}
	s.bytes += p.bytes - before
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return nil
}

// Dropped counts items that were given up for a resync since the start.
func (s *Stream) Dropped() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dropped
}

func (s *Stream) run(ctx context.Context, done chan struct{}) {
	defer close(done)
	defer func() { // the last words of a run must still reach the pages
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
		defer cancel()
		s.flush(last)
	}()
	wait := time.NewTimer(flushEvery)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		wait.Reset(flushEvery)
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		if !s.flush(ctx) {
			select { // try again without being asked
			case s.wake <- struct{}{}:
			default:
			}
		}
	}
}

// flush writes everything that waits and reports whether it could.
func (s *Stream) flush(ctx context.Context) bool {
	for {
		if s.retry == nil {
			s.retry = s.take()
			s.batch++
		}
		if len(s.retry) == 0 {
			s.retry = nil
			return true
		}
		c, cancel := context.WithTimeout(ctx, flushTimeout)
		err := s.write(c, s.retry)
		cancel()
		if err != nil {
			if !s.failed && ctx.Err() == nil {
				s.logger.Warn("live updates cannot be written; retrying", slog.Any("error", err))
			}
			s.failed = true
			return false
		}
		if s.failed {
			s.logger.Info("live updates are written again")
		}
		s.failed, s.retry = false, nil
	}
}

// take removes the next batch from what waits, oldest topics first.
func (s *Stream) take() []write {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []write
	size := 0
	for _, t := range s.order {
		p := s.topics[t]
		if len(out) == batchTopics || len(out) > 0 && size+p.bytes > batchBytes {
			break
		}
		size += p.bytes
		s.bytes -= p.bytes
		out = append(out, write{t, p.ops})
		delete(s.topics, t)
	}
	s.order = slices.Delete(s.order, 0, len(out))
	return out
}

func (s *Stream) write(ctx context.Context, ws []write) error {
	keys := []string{epochKey, "agentrl:live:publisher:" + s.id}
	args := []any{s.batch}
	for _, w := range ws {
		keys = append(keys, headKey(w.topic), ringKey(w.topic))
		size := 0
		for _, o := range w.ops {
			size += len(o.data)
		}
		live := ttl(w.topic, w.ops[len(w.ops)-1].kind)
		keep := min(ringCap, max(ringLeast, ringBytes/(size/len(w.ops)+1)))
		args = append(args, keep, live.Milliseconds(), len(w.ops))
		for _, o := range w.ops {
			data := string(o.data)
			if o.kind == Delta {
				data = "[" + data + "]"
			}
			args = append(args, string(o.kind), data)
		}
	}
	n, err := appendScript.Run(ctx, s.rdb, keys, args...).Int64()
	if err == nil && n == 0 {
		s.logger.Debug("live batch was already written", slog.String("batch", strconv.FormatInt(s.batch, 10)))
	}
	return err
}
