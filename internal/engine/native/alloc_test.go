package native

import (
	"math/rand/v2"
	"testing"

	"agentrl/internal/policy"
)

// Not parallel: allocations are counted for the whole process.
func TestDecodingDoesNotAllocate(t *testing.T) {
	e := newEngine(t, func(o *Options) { o.Threads = 1 })
	publish(t, e, 0)
	v, err := e.published(0)
	if err != nil {
		t.Fatal(err)
	}
	s := newShard(e.service, e.kernel)
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 16 {
		ids := randomIDs(rng, 10)
		q := &sequence{
			version: v, tokens: append(make([]int32, 0, 110), ids...), prompt: 10, limit: 110, stops: noStop,
			sampling: policy.Sampling{Temperature: 0.9, Seed: uint64(i)}, logprobs: make([]float32, 0, 100), done: make(chan outcome, 1),
		}
		s.submit(q)
	}
	s.admit()
	s.step() // prompts
	if len(s.live) != 16 {
		t.Fatalf("%d sequences are live", len(s.live))
	}
	if n := testing.AllocsPerRun(40, s.step); n != 0 {
		t.Errorf("a decoding step makes %v allocations", n)
	}
	for _, d := range s.decoders {
		d.Close()
	}
}
