package native

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"agentrl/internal/errs"
	"agentrl/internal/nn/kernel"
	"agentrl/internal/policy"
	"agentrl/internal/trajectory"
)

const (
	chunk   = 256 // prompt tokens fed per step, version and shard
	minHead = 16  // shorter openings are not worth sharing

	// Above this size one multiplication is worth spreading over all threads; below, threads that each decode their own
	// sequences never wait for one another.
	shardedParameters = 8 << 20
)

var errClosed = errs.New(errs.Unavailable, "the engine is closed")

// service samples for all versions: continuous batching over shards that admit new sequences between steps
// (compute.md 8).
type service struct {
	kv              *kvStore
	shards          []*shard
	perVersion      int // live sequences per version and shard
	threadsPerShard int
	queueMax        int64
	maxContext      int
	engineID        string
	stops           []int32
	now             func() time.Time

	promptTokens  atomic.Int64
	sampledTokens atomic.Int64

	start  sync.Once
	cancel context.CancelFunc
	ctx    context.Context
	wg     sync.WaitGroup
}

type serviceOptions struct {
	threads, maxBatch, maxContext, queueMax int
	parameters                              int
	cacheBytes                              int64
	engineID                                string
	stops                                   []int32
	now                                     func() time.Time
}

func newService(o serviceOptions, kern kernel.Kernel) *service {
	n := o.threads
	if o.parameters > shardedParameters {
		n = 1
	}
	s := &service{
		kv:              newKVStore(o.cacheBytes, o.maxBatch),
		perVersion:      (o.maxBatch + n - 1) / n,
		threadsPerShard: o.threads / n,
		queueMax:        int64(o.queueMax),
		maxContext:      o.maxContext,
		engineID:        o.engineID,
		stops:           o.stops,
		now:             o.now,
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for range n {
		s.shards = append(s.shards, newShard(s, kern))
	}
	return s
}

func (s *service) Start() {
	s.start.Do(func() {
		for _, sh := range s.shards {
			s.wg.Go(func() { sh.run(s.ctx) })
		}
	})
}

// Stop ends all generations with an error and waits for the shards. It is idempotent.
func (s *service) Stop() {
	s.cancel()
	s.wg.Wait()
	for _, sh := range s.shards {
		sh.abortAll() // what was queued after the shard had left
	}
}

// retire forgets what is kept for a released version; running generations finish.
func (s *service) retire(v *version) {
	v.released.Store(true)
	s.kv.dropVersion(v)
	for _, sh := range s.shards {
		sh.notify()
	}
}

func (s *service) load() (n int64) {
	for _, sh := range s.shards {
		n += sh.load.Load()
	}
	return n
}

// generate runs one request to its end. On cancellation it returns at once; the shard drops the sequence at its next
// step.
func (s *service) generate(ctx context.Context, v *version, p policy.Prompt, sm policy.Sampling) (policy.Completion, error) {
	if err := ctx.Err(); err != nil {
		return policy.Completion{}, err
	}
	if err := checkRequest(p, sm, v.weights.Config().Vocab); err != nil {
		return policy.Completion{}, err
	}
	if len(p.IDs) >= s.maxContext {
		return policy.Completion{Finish: trajectory.FinishLength, Version: int64(v.number), Digest: v.digest, EngineID: s.engineID}, nil
	}
	if s.load() >= s.queueMax {
		return policy.Completion{}, errs.New(errs.Unavailable, "the sampling queue is full (%d requests)", s.queueMax)
	}
	room := min(sm.MaxNewTokens, s.maxContext-len(p.IDs))
	q := &sequence{
		version:  v,
		key:      p.CacheKey,
		tokens:   append(make([]int32, 0, len(p.IDs)+room), p.IDs...),
		prompt:   len(p.IDs),
		limit:    len(p.IDs) + room,
		sampling: sm,
		stops:    p.Stops,
		logprobs: make([]float32, 0, room),
		done:     make(chan outcome, 1),
	}
	if len(q.stops) == 0 {
		q.stops = s.stops
	}
	if p.Constraint != nil {
		q.state = p.Constraint.Begin()
	}
	least := s.shards[0]
	for _, sh := range s.shards[1:] {
		if sh.load.Load() < least.load.Load() {
			least = sh
		}
	}
	least.submit(q)
	select {
	case o := <-q.done:
		return o.completion, o.err
	case <-ctx.Done():
		q.cancelled.Store(true)
		least.notify()
		return policy.Completion{}, ctx.Err()
	case <-s.ctx.Done():
		return policy.Completion{}, errClosed
	}
}

func checkRequest(p policy.Prompt, sm policy.Sampling, vocab int) error {
	if len(p.IDs) == 0 {
		return errs.Field("prompt", "it is empty; at least one token is needed")
	}
	for i, id := range p.IDs {
		if id < 0 || int(id) >= vocab {
			return errs.Field("prompt", "token %d at position %d is outside the vocabulary of %d", id, i, vocab)
		}
	}
	switch {
	case sm.MaxNewTokens < 1:
		return errs.Field("max_new_tokens", "%d is not allowed; it must be at least 1", sm.MaxNewTokens)
	case !(sm.Temperature >= 0 && sm.Temperature <= 100):
		return errs.Field("temperature", "%v is not allowed; it must be from 0 to 100", sm.Temperature)
	case !(sm.TopP >= 0 && sm.TopP <= 1):
		return errs.Field("top_p", "%v is not allowed; it must be from 0 to 1", sm.TopP)
	case !(sm.MinP >= 0 && sm.MinP <= 1):
		return errs.Field("min_p", "%v is not allowed; it must be from 0 to 1", sm.MinP)
	case sm.TopK < 0:
		return errs.Field("top_k", "%d is not allowed; it must be at least 0", sm.TopK)
	}
	return nil
}
