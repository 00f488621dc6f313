package native

import (
	"context"

	"agentrl/internal/nn"
)

// admit moves queued sequences to the live ones, at most perVersion of each version, oldest first. Of equal openings
// only the first is admitted until it is filled; the others then copy its cache.
func (s *shard) admit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := s.queue[:0]
	for _, q := range s.queue {
		switch {
		case q.cancelled.Load():
			s.finish(q, outcome{err: context.Canceled})
		case s.countLive(q.version) >= s.svc.perVersion || !s.prepare(q):
			waiting = append(waiting, q)
		default:
			s.live = append(s.live, q)
		}
	}
	clear(s.queue[len(waiting):])
	s.queue = waiting
}

func (s *shard) countLive(v *version) int {
	n := 0
	for _, q := range s.live {
		if q.version == v {
			n++
		}
	}
	return n
}

// prepare finds a cache for q; false means that it should wait for an equal opening.
func (s *shard) prepare(q *sequence) bool {
	kv := s.svc.kv
	q.cache = kv.take(q.key, q.version, q.tokens)
	if q.cache == nil && q.key != "" && len(q.tokens) >= minHead {
		q.head = kv.headKey(q.version, q.tokens)
		if q.cache = kv.head(q.head, q.tokens); q.cache == nil {
			if s.filling[q.head] {
				return false
			}
			s.filling[q.head] = true
			q.fresh = true
		}
	}
	if q.cache == nil {
		q.cache = kv.spare(q.version)
	}
	if q.cache == nil {
		q.cache = s.decoder(q.version).NewCache(q.limit)
	}
	q.fed = q.cache.Len()
	q.cached = q.fed
	return true
}

func (s *shard) decoder(v *version) *nn.Decoder {
	d := s.decoders[v]
	if d == nil {
		d = nn.NewDecoder(v.weights, nn.DecoderOptions{Threads: s.svc.threadsPerShard})
		s.decoders[v] = d
	}
	return d
}
