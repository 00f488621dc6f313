package native

import (
	"context"
	"sync"
	"sync/atomic"

	"agentrl/internal/nn"
	"agentrl/internal/nn/kernel"
	"agentrl/internal/policy"
	"agentrl/internal/trajectory"
)

// shard decodes its share of the live sequences in one goroutine. Which shard a sequence lands on, and who stands
// beside it, changes nothing about its tokens: rows are computed independently and draws are keyed by the request.
type shard struct {
	svc  *service
	wake chan struct{}
	load atomic.Int64 // queued and live

	mu    sync.Mutex
	queue []*sequence

	live     []*sequence
	versions []*version // of the live sequences, in order of appearance
	decoders map[*version]*nn.Decoder
	filling  map[headKey]bool // openings being filled at the moment
	draw     drawer

	rows   []*sequence
	caches []*nn.Cache
	ids    [][]int32
}

func newShard(svc *service, kern kernel.Kernel) *shard {
	return &shard{
		svc: svc, wake: make(chan struct{}, 1), decoders: map[*version]*nn.Decoder{}, filling: map[headKey]bool{},
		draw: drawer{kernel: kern},
	}
}

// submit queues a sequence.
func (s *shard) submit(q *sequence) {
	s.load.Add(1)
	s.mu.Lock()
	s.queue = append(s.queue, q)
	s.mu.Unlock()
	s.notify()
}

func (s *shard) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *shard) run(ctx context.Context) {
	for {
		s.admit()
		s.dropDecoders()
		if len(s.live) == 0 {
			select {
			case <-s.wake:
			case <-ctx.Done():
				s.abortAll()
				return
			}
			continue
		}
		if ctx.Err() != nil {
			s.abortAll()
			return
		}
		s.step()
	}
}

// dropDecoders frees the workspaces of released versions that no live sequence uses.
func (s *shard) dropDecoders() {
	for v, d := range s.decoders {
		if v.released.Load() && s.countLive(v) == 0 {
			d.Close()
			delete(s.decoders, v)
		}
	}
}

// step advances every live sequence: those whose prompt is in the cache by one token, the others by a chunk.
func (s *shard) step() {
	s.versions = s.versions[:0]
	keep := s.live[:0]
	for _, q := range s.live {
		if q.cancelled.Load() {
			s.discard(q)
			s.finish(q, outcome{err: context.Canceled})
			continue
		}
		keep = append(keep, q)
		known := false
		for _, v := range s.versions {
			known = known || v == q.version
		}
		if !known {
			s.versions = append(s.versions, q.version)
		}
	}
	clear(s.live[len(keep):])
	s.live = keep
	for _, v := range s.versions {
		s.stepVersion(v)
	}
}

func (s *shard) stepVersion(v *version) {
	s.rows, s.caches, s.ids = s.rows[:0], s.caches[:0], s.ids[:0]
	budget := chunk
	for _, q := range s.live {
		if q.version != v {
			continue
		}
		n := len(q.tokens) - q.fed
		if n > 1 {
			// Prompts share a budget per step so that decoding sequences are not starved.
			if n = min(n, budget); n == 0 {
				continue
			}
			budget -= n
		}
		s.rows = append(s.rows, q)
		s.caches = append(s.caches, q.cache)
		s.ids = append(s.ids, q.tokens[q.fed:q.fed+n])
	}
	logits, err := s.decoder(v).Extend(s.caches, s.ids)
	if err != nil {
		for _, q := range s.rows {
			s.end(q, outcome{err: err})
		}
		return
	}
	vocab := v.weights.Config().Vocab
	var prompt, sampled int64
	for i, q := range s.rows {
		q.fed += len(s.ids[i])
		if q.fed <= q.prompt {
			prompt += int64(len(s.ids[i]))
		}
		if q.fed < len(q.tokens) {
			continue
		}
		if q.fresh {
			s.svc.kv.putHead(q.head, q.tokens[:q.prompt:q.prompt], q.cache)
			s.unfill(q)
		}
		u := policy.Uniform(policy.Hash(q.sampling.Seed, uint64(len(q.tokens)-q.prompt)))
		d, err := s.draw.draw(logits[i*vocab:(i+1)*vocab], &q.sampling, q.state, u)
		if err != nil {
			s.end(q, outcome{err: err})
			continue
		}
		sampled++
		if q.first.IsZero() {
			q.first = s.svc.now()
		}
		if finish := q.accept(d, q.state != nil || truncates(&q.sampling)); finish != "" {
			s.end(q, outcome{completion: q.completion(finish, s.svc.engineID)})
		}
	}
	s.svc.promptTokens.Add(prompt)
	s.svc.sampledTokens.Add(sampled)
}

// unfill lets those go on that wait for the opening of q.
func (s *shard) unfill(q *sequence) {
	if q.fresh {
		q.fresh = false
		delete(s.filling, q.head)
	}
}

func (s *shard) discard(q *sequence) {
	s.unfill(q)
	s.svc.kv.discard(q.version, q.cache)
	q.cache = nil
}

// end takes q out of the live sequences, keeps its cache for the next turn and delivers its outcome.
func (s *shard) end(q *sequence, o outcome) {
	for i, l := range s.live {
		if l == q {
			last := len(s.live) - 1
			copy(s.live[i:], s.live[i+1:])
			s.live[last] = nil
			s.live = s.live[:last]
			break
		}
	}
	if o.err != nil {
		s.discard(q)
	} else {
		s.svc.kv.put(q.key, q.version, q.tokens[:q.fed:q.fed], q.cache)
		q.cache = nil
	}
	s.finish(q, o)
}

func (s *shard) finish(q *sequence, o outcome) {
	s.load.Add(-1)
	q.done <- o
}

// abortAll ends everything when the service stops.
func (s *shard) abortAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range append(s.live, s.queue...) {
		s.finish(q, outcome{completion: policy.Completion{Finish: trajectory.FinishAbort}, err: errClosed})
	}
	s.live, s.queue = nil, nil
	for v, d := range s.decoders {
		d.Close()
		delete(s.decoders, v)
	}
}
