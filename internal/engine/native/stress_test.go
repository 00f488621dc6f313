package native

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"agentrl/internal/engine"
	"agentrl/internal/errs"
	"agentrl/internal/policy"
)

// Whatever the interleaving of turns, publications, releases, cancellations and ended episodes: every token has a
// log-prob and the version that wrote it, and the engine is empty afterwards.
func TestTurnsWhileVersionsComeAndGo(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(o *Options) { o.MaxBatch, o.CacheBytes = 6, 1<<20 })
	var mu sync.Mutex
	digests := map[int64]string{}
	latest := engine.Version(0)
	put := func(v engine.Version) {
		d, err := e.Publish(t.Context(), v)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		digests[int64(v)], latest = d, v
		mu.Unlock()
	}
	put(0)
	var wg sync.WaitGroup
	for w := range 12 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 3))
			key, ids := fmt.Sprint(w), randomIDs(rng, 20)
			for turn := range 25 {
				mu.Lock()
				v := latest
				mu.Unlock()
				p, err := e.Sampler(v)
				if errs.CodeOf(err) == errs.NotFound && err != nil {
					continue // released in between
				}
				if err != nil {
					t.Error(err)
					return
				}
				ctx, cancel := context.WithCancel(t.Context())
				if rng.IntN(5) == 0 {
					cancel()
				}
				c, err := p.Generate(ctx, policy.Prompt{IDs: ids, CacheKey: key, Stops: noStop}, policy.Sampling{Temperature: 1, MaxNewTokens: 3, Seed: uint64(turn)})
				cancel()
				if errors.Is(err, context.Canceled) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				want := digests[c.Version]
				mu.Unlock()
				if len(c.Logprobs) != len(c.IDs) || len(c.IDs) != 3 || c.Version != int64(v) || c.Digest != want {
					t.Errorf("%d ids, %d log-probs, version %d of %d", len(c.IDs), len(c.Logprobs), c.Version, v)
				}
				ids = append(append(ids, c.IDs...), 1)
			}
			e.Forget(key)
		})
	}
	for v := engine.Version(1); v <= 10; v++ {
		train(t, e, uint64(v))
		put(v)
		if err := e.Release(v - 1); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if err := e.Release(10); err != nil {
		t.Error(err)
	}
	for e.Stats().Live > 0 {
		if t.Context().Err() != nil {
			t.Fatal("sequences were left over")
		}
	}
	if s := e.Stats(); s.CacheBytes != 0 || s.CacheEntries != 0 {
		t.Errorf("%d bytes in %d caches are left over", s.CacheBytes, s.CacheEntries)
	}
}
