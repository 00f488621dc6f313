//go:build unix

package native

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentrl/internal/policy"
)

// cpu returns the processor time that the process has used, which a loaded machine does not falsify.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEpisodes plays rounds of short turns as rollouts do: 64 episodes at a time, each of ten turns of six tokens
// that continue a cached prefix. It reports computed rows (prompt and sampled tokens) per second.
func BenchmarkEpisodes(b *testing.B) {
	e := newEngine(b, func(o *Options) { o.MaxContext = 512 })
	p := publish(b, e, 0)
	play := func(seed uint64) {
		rng := rand.New(rand.NewPCG(seed/8, 1))
		ids := randomIDs(rng, 60)
		key := fmt.Sprint(seed)
		for turn := range 10 {
			c, err := p.Generate(b.Context(), policy.Prompt{IDs: ids, CacheKey: key, Stops: noStop}, policy.Sampling{Temperature: 1, MaxNewTokens: 6, Seed: seed<<8 + uint64(turn)})
			if err != nil {
				b.Error(err)
				return
			}
			ids = append(append(ids, c.IDs...), randomIDs(rng, 8)...)
		}
		e.Forget(key)
	}
	seeds := make(chan uint64)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for s := range seeds {
				play(s)
			}
		})
	}
	b.ResetTimer()
	before, start := e.Stats(), cpu(b)
	for i := range b.N {
		seeds <- uint64(i)
	}
	close(seeds)
	wg.Wait()
	b.StopTimer()
	s := e.Stats()
	rows := float64(s.PromptTokens + s.SampledTokens - before.PromptTokens - before.SampledTokens)
	b.ReportMetric(rows/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(rows/(cpu(b)-start).Seconds(), "rows/cpu-s")
	b.ReportMetric(float64(s.SampledTokens-before.SampledTokens)/b.Elapsed().Seconds(), "sampled/s")
}

// BenchmarkDecode keeps 64 long generations going and reports sampled tokens per second.
func BenchmarkDecode(b *testing.B) {
	e := newEngine(b, func(o *Options) { o.MaxContext = 512 })
	p := publish(b, e, 0)
	rng := rand.New(rand.NewPCG(1, 1))
	prompt := randomIDs(rng, 60)
	const length = 100
	seeds := make(chan uint64)
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for s := range seeds {
				if _, err := p.Generate(b.Context(), policy.Prompt{IDs: prompt, Stops: noStop}, policy.Sampling{Temperature: 1, MaxNewTokens: length, Seed: s}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	start := cpu(b)
	b.ResetTimer()
	for i := range b.N {
		seeds <- uint64(i)
	}
	close(seeds)
	wg.Wait()
	b.ReportMetric(float64(b.N)*length/b.Elapsed().Seconds(), "sampled/s")
	b.ReportMetric(float64(b.N)*length/(cpu(b)-start).Seconds(), "sampled/cpu-s")
}

func BenchmarkDraw(b *testing.B) {
	e := newEngine(b, nil)
	d := drawer{kernel: e.kernel}
	rng := rand.New(rand.NewPCG(1, 1))
	logits := make([]float32, 512)
	for i := range logits {
		logits[i] = float32(rng.NormFloat64() * 3)
	}
	s := policy.Sampling{Temperature: 1}
	b.ResetTimer()
	for i := range b.N {
		if _, err := d.draw(logits, &s, nil, policy.Uniform(policy.Hash(1, uint64(i)))); err != nil {
			b.Fatal(err)
		}
	}
}
