package native

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"agentrl/internal/engine"
	"agentrl/internal/errs"
	"agentrl/internal/policy"
	"agentrl/internal/trajectory"
)

func TestSamplerAndTrainerAgree(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	train(t, e, 1)
	p := publish(t, e, 1)
	rng := rand.New(rand.NewPCG(1, 9))
	for _, temperature := range []float64{1, 0.7} {
		var batch []engine.Datum
		var want [][]float32
		var starts []int
		for i := range 5 {
			prompt := randomIDs(rng, 5+9*i)
			c := generate(t, p, policy.Prompt{IDs: prompt, Stops: noStop}, policy.Sampling{Temperature: temperature, MaxNewTokens: 20, Seed: uint64(i)})
			if len(c.IDs) != 20 || c.Finish != trajectory.FinishLength || len(c.KeptMass) != 0 {
				t.Fatalf("%d tokens, finish %s, %d kept masses", len(c.IDs), c.Finish, len(c.KeptMass))
			}
			batch = append(batch, engine.Datum{Tokens: append(prompt, c.IDs...)})
			want, starts = append(want, c.Logprobs), append(starts, len(prompt))
		}
		got, err := e.Forward(t.Context(), batch, temperature)
		if err != nil {
			t.Fatal(err)
		}
		for i := range batch {
			for j, lp := range want[i] {
				if d := math.Abs(float64(lp - got[i][starts[i]+j])); !(d <= 1e-5) {
					t.Errorf("temperature %v, sequence %d, token %d: sampler %v, trainer %v", temperature, i, j, lp, got[i][starts[i]+j])
				}
			}
		}
	}
}

func TestCachedTurnsEqualFullPrefill(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	p := publish(t, e, 0)
	rng := rand.New(rand.NewPCG(2, 9))
	ids := randomIDs(rng, 20)
	for turn := range 4 {
		s := policy.Sampling{Temperature: 1, MaxNewTokens: 6, Seed: uint64(turn)}
		cached := generate(t, p, policy.Prompt{IDs: ids, CacheKey: "a", Stops: noStop}, s)
		full := generate(t, p, policy.Prompt{IDs: ids, Stops: noStop}, s)
		if err := sameCompletion(cached, full); err != nil {
			t.Errorf("turn %d: %v", turn, err)
		}
		if full.CachedTokens != 0 {
			t.Error("without a key nothing may be cached")
		}
		// All but the last sampled token of the turn before are in the cache.
		if want := len(ids) - 8; turn > 0 && cached.CachedTokens != want {
			t.Errorf("turn %d: %d tokens came from the cache, want %d", turn, cached.CachedTokens, want)
		}
		ids = append(slices.Concat(ids, cached.IDs), randomIDs(rng, 7)...)
	}
	// A rewound history uses the common prefix only.
	back := append(slices.Clone(ids[:15]), 1, 2, 3)
	s := policy.Sampling{Temperature: 1, MaxNewTokens: 6, Seed: 9}
	a := generate(t, p, policy.Prompt{IDs: back, CacheKey: "a", Stops: noStop}, s)
	b := generate(t, p, policy.Prompt{IDs: back, Stops: noStop}, s)
	if err := sameCompletion(a, b); err != nil || a.CachedTokens != 15 {
		t.Errorf("after rewinding: %v, %d cached", err, a.CachedTokens)
	}
	p.(policy.Forgetter).Forget("a")
	if c := generate(t, p, policy.Prompt{IDs: back, CacheKey: "a", Stops: noStop}, s); c.CachedTokens > len(back)-1 || sameCompletion(a, c) != nil {
		t.Error("forgetting changed the result")
	}
}

func TestResultsDoNotDependOnTheBatch(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 9))
	type request struct {
		p policy.Prompt
		s policy.Sampling
	}
	var requests []request
	for i := range 33 {
		r := request{policy.Prompt{IDs: randomIDs(rng, 3+rng.IntN(60)), Stops: noStop}, policy.Sampling{Temperature: 1, MaxNewTokens: 1 + rng.IntN(20), Seed: rng.Uint64()}}
		switch i % 4 {
		case 1:
			r.s.TopK = 5
		case 2:
			r.s.TopP = 0.8
		case 3:
			r.p.CacheKey = fmt.Sprint(i)
		}
		requests = append(requests, r)
	}
	alone := make([]policy.Completion, len(requests))
	e := newEngine(t, func(o *Options) { o.Threads = 1 })
	p := publish(t, e, 0)
	for i, r := range requests {
		alone[i] = generate(t, p, r.p, r.s)
	}
	for _, threads := range []int{1, 3} {
		for _, maxBatch := range []int{4, 64} {
			e := newEngine(t, func(o *Options) { o.Threads, o.MaxBatch = threads, maxBatch })
			p := publish(t, e, 0)
			var wg sync.WaitGroup
			for i, r := range requests {
				wg.Go(func() {
					c, err := p.Generate(t.Context(), r.p, r.s)
					if err != nil {
						t.Error(err)
						return
					}
					if err := sameCompletion(c, alone[i]); err != nil {
						t.Errorf("%d threads, batch %d, request %d: %v", threads, maxBatch, i, err)
					}
				})
			}
			wg.Wait()
		}
	}
}

func TestGroupSharesItsOpening(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(o *Options) { o.Threads = 1 })
	p := publish(t, e, 0)
	ids := randomIDs(rand.New(rand.NewPCG(4, 9)), 60)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := policy.Sampling{Temperature: 1, MaxNewTokens: 4, Seed: uint64(i)}
			c, err := p.Generate(t.Context(), policy.Prompt{IDs: ids, CacheKey: fmt.Sprint(i), Stops: noStop}, s)
			if err != nil {
				t.Error(err)
				return
			}
			full, err := p.Generate(t.Context(), policy.Prompt{IDs: ids, Stops: noStop}, s)
			if err != nil {
				t.Error(err)
				return
			}
			if err := sameCompletion(c, full); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// One opening of 60, seven times its last token, eight times in full for comparison.
	if got, want := e.Stats().PromptTokens, int64(60+7+8*60); got != want {
		t.Errorf("%d prompt tokens were computed, want %d", got, want)
	}
}

func TestStopsAndLimits(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	p := publish(t, e, 0)
	all := make([]int32, 256)
	for i := range all {
		all[i] = int32(i)
	}
	full := generate(t, p, policy.Prompt{IDs: []int32{1, 2}, Stops: noStop}, policy.Sampling{Temperature: 1, MaxNewTokens: 10, Seed: 1})
	c := generate(t, p, policy.Prompt{IDs: []int32{1, 2}, Stops: []int32{full.IDs[3]}}, policy.Sampling{Temperature: 1, MaxNewTokens: 10, Seed: 1})
	at := slices.Index(full.IDs, full.IDs[3]) + 1
	if c.Finish != trajectory.FinishStop || !slices.Equal(c.IDs, full.IDs[:at]) || !slices.Equal(c.Logprobs, full.Logprobs[:at]) {
		t.Errorf("stopped with %v (%s), want %v", c.IDs, c.Finish, full.IDs[:at])
	}
	long := randomIDs(rand.New(rand.NewPCG(1, 1)), 125)
	if c := generate(t, p, policy.Prompt{IDs: long, Stops: noStop}, policy.Sampling{Temperature: 1, MaxNewTokens: 10}); len(c.IDs) != 3 || c.Finish != trajectory.FinishLength {
		t.Errorf("at the end of the context: %d tokens, %s", len(c.IDs), c.Finish)
	}
	if c := generate(t, p, policy.Prompt{IDs: randomIDs(rand.New(rand.NewPCG(1, 1)), 128)}, policy.Sampling{Temperature: 1, MaxNewTokens: 10}); len(c.IDs) != 0 || c.Finish != trajectory.FinishLength {
		t.Errorf("no room at all: %d tokens, %s", len(c.IDs), c.Finish)
	}
	for name, r := range map[string]struct {
		ids []int32
		s   policy.Sampling
	}{
		"empty prompt":   {nil, policy.Sampling{MaxNewTokens: 1}},
		"id too large":   {[]int32{1, 5000}, policy.Sampling{MaxNewTokens: 1}},
		"negative id":    {[]int32{-1}, policy.Sampling{MaxNewTokens: 1}},
		"no tokens":      {[]int32{1}, policy.Sampling{}},
		"temperature":    {[]int32{1}, policy.Sampling{MaxNewTokens: 1, Temperature: math.NaN()}},
		"top p":          {[]int32{1}, policy.Sampling{MaxNewTokens: 1, TopP: 1.5}},
		"min p":          {[]int32{1}, policy.Sampling{MaxNewTokens: 1, MinP: -1}},
		"negative top k": {[]int32{1}, policy.Sampling{MaxNewTokens: 1, TopK: -1}},
	} {
		if _, err := p.Generate(t.Context(), policy.Prompt{IDs: r.ids}, r.s); errs.CodeOf(err) != errs.Invalid || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
