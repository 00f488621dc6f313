package nn

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func randomIDs(rng *rand.Rand, n, vocab int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(rng.IntN(vocab))
	}
	return ids
}

// TestDecodingHasTheBitsOfOnePrefill feeds sequences token by token in batches of 1 to 33 with ragged lengths, in one
// piece, and in uneven pieces; all must agree bit for bit, for any number of threads.
func TestDecodingHasTheBitsOfOnePrefill(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 7))
	c := tinyConfig()
	c.Context = 400
	m := mustModel(t, c, 3)
	loud(m, rng)
	w := m.Pack()
	seqs := make([][]int32, 33)
	want := make([][][]float32, len(seqs)) // per sequence and position
	alone := NewDecoder(w, DecoderOptions{Threads: 1})
	t.Cleanup(alone.Close)
	for i := range seqs {
		seqs[i] = randomIDs(rng, 1+rng.IntN(40), c.Vocab)
		if i == 5 {
			seqs[i] = randomIDs(rng, 333, c.Vocab) // several blocks of keys
		}
		cache := alone.NewCache(1)
		for _, id := range seqs[i] {
			z, err := alone.Step([]*Cache{cache}, []int32{id})
			if err != nil {
				t.Fatal(err)
			}
			want[i] = append(want[i], append([]float32(nil), z...))
		}
	}
	for _, threads := range []int{1, 2, 5} {
		d := NewDecoder(w, DecoderOptions{Threads: threads})
		t.Cleanup(d.Close)
		caches := make([]*Cache, len(seqs))
		for i := range caches {
			caches[i] = d.NewCache(8)
		}
		for { // everyone appends a piece of random length
			var cs []*Cache
			var ids [][]int32
			var who []int
			for i, s := range seqs {
				if n := caches[i].Len(); n < len(s) && rng.IntN(4) > 0 {
					cs, who = append(cs, caches[i]), append(who, i)
					ids = append(ids, s[n:n+1+rng.IntN(len(s)-n)])
				}
			}
			if len(cs) == 0 {
				if done(caches, seqs) {
					break
				}
				continue
			}
			z, err := d.Extend(cs, ids)
			if err != nil {
				t.Fatal(err)
			}
			for j, i := range who {
				sameBits(t, z[j*c.Vocab:][:c.Vocab], want[i][caches[i].Len()-1])
			}
		}
	}
}

func done(caches []*Cache, seqs [][]int32) bool {
	for i := range seqs {
		if caches[i].Len() < len(seqs[i]) {
			return false
		}
	}
	return true
}

func sameBits(t *testing.T, got, want []float32) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("element %d is %g, want %g", i, got[i], want[i])
		}
	}
}

// TestDecoderAgreesWithTrainerAndReference checks log-probs and logits at every position of one sequence.
func TestDecoderAgreesWithTrainerAndReference(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(8, 8))
	m := mustModel(t, tinyConfig(), 3)
	loud(m, rng)
	ids := randomIDs(rng, 60, m.cfg.Vocab)
	tr := mustTrainer(t, m, TrainerOptions{Threads: 2})
	lps, err := tr.Forward(context.Background(), []Datum{{Tokens: ids[:7]}, {Tokens: ids}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	ref := newRef(m).logits(ids)
	d := NewDecoder(m.Pack(), DecoderOptions{Threads: 1})
	t.Cleanup(d.Close)
	cache := d.NewCache(64)
	for i, id := range ids[:len(ids)-1] {
		z, err := d.Step([]*Cache{cache}, []int32{id})
		if err != nil {
			t.Fatal(err)
		}
		lse := 0.0
		for j, v := range z {
			if math.Abs(float64(v)-ref[i][j]) > 1e-4 {
				t.Fatalf("logit %d at %d is %g, want %g", j, i, v, ref[i][j])
			}
			lse += math.Exp(float64(v))
		}
		if lp := float64(z[ids[i+1]]) - math.Log(lse); math.Abs(lp-float64(lps[1][i+1])) > 2e-6 {
			t.Fatalf("log-prob at %d is %g, the trainer says %g", i+1, lp, lps[1][i+1])
		}
	}
	sameBits(t, lps[0], lps[1][:7])
}

// TestCacheRewindAndClone continues from a shared prefix and after forgetting tokens.
func TestCacheRewindAndClone(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(9, 9))
	m := mustModel(t, tinyConfig(), 3)
	loud(m, rng)
	d := NewDecoder(m.Pack(), DecoderOptions{Threads: 2})
	t.Cleanup(d.Close)
	prefix, tail, other := randomIDs(rng, 20, 37), randomIDs(rng, 9, 37), randomIDs(rng, 12, 37)
	fresh := d.NewCache(4)
	z, err := d.Prefill(fresh, append(append([]int32(nil), prefix...), tail...))
	if err != nil {
		t.Fatal(err)
	}
	want := append([]float32(nil), z...)
	c := d.NewCache(32)
	if _, err := d.Prefill(c, prefix); err != nil {
		t.Fatal(err)
	}
	twin := c.Clone()
	if _, err := d.Prefill(c, other); err != nil {
		t.Fatal(err)
	}
	c.Truncate(len(prefix))
	for _, x := range []*Cache{c, twin} {
		if z, err = d.Prefill(x, tail); err != nil {
			t.Fatal(err)
		}
		sameBits(t, z, want)
	}
}

// TestVersionsAreIsolated trains on while a packed version stays what it was, and refuses caches of another version.
func TestVersionsAreIsolated(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(10, 10))
	m := mustModel(t, tinyConfig(), 3)
	loud(m, rng)
	w := m.Pack()
	if w.Digest() != m.Digest() || w.Bytes() <= 0 {
		t.Fatalf("digest %q of %d bytes, model %q", w.Digest(), w.Bytes(), m.Digest())
	}
	ids := randomIDs(rng, 12, 37)
	d := NewDecoder(w, DecoderOptions{Threads: 1})
	t.Cleanup(d.Close)
	cache := d.NewCache(16)
	z, err := d.Prefill(cache, ids)
	if err != nil {
		t.Fatal(err)
	}
	want := append([]float32(nil), z...)
	tr := mustTrainer(t, m, TrainerOptions{Threads: 1})
	if _, err := tr.ForwardBackward(context.Background(), randomBatch(m, rng, 12), testLosses()["cross-entropy"]); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.OptimStep(AdamParams{LearningRate: 0.1}); err != nil {
		t.Fatal(err)
	}
	if m.Digest() == w.Digest() {
		t.Fatal("the step changed nothing")
	}
	if z, err = d.Prefill(d.NewCache(16), ids); err != nil {
		t.Fatal(err)
	}
	sameBits(t, z, want)
	next := NewDecoder(m.Pack(), DecoderOptions{Threads: 1})
	t.Cleanup(next.Close)
	if _, err := next.Prefill(cache, ids); err == nil || !strings.Contains(err.Error(), "other weights") {
		t.Errorf("a cache of another version was read: %v", err)
	}
}

func TestDecoderRefusesBadInput(t *testing.T) {
	t.Parallel()
	m := mustModel(t, tinyConfig(), 3)
	d := NewDecoder(m.Pack(), DecoderOptions{Threads: 1})
	t.Cleanup(d.Close)
	c := d.NewCache(16)
	for name, f := range map[string]func() error{
		"no tokens":     func() error { _, err := d.Prefill(c, nil); return err },
		"id too large":  func() error { _, err := d.Prefill(c, []int32{37}); return err },
		"id negative":   func() error { _, err := d.Prefill(c, []int32{-1}); return err },
		"over context":  func() error { _, err := d.Prefill(c, make([]int32, 129)); return err },
		"twice":         func() error { _, err := d.Step([]*Cache{c, c}, []int32{1, 2}); return err },
		"counts differ": func() error { _, err := d.Step([]*Cache{c}, []int32{1, 2}); return err },
		"nil":           func() error { _, err := d.Step([]*Cache{nil}, []int32{1}); return err },
	} {
		if f() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if c.Len() != 0 {
		t.Errorf("the cache took %d tokens from refused calls", c.Len())
	}
}

func TestDecodingDoesNotAllocate(t *testing.T) {
	m := mustModel(t, tinyConfig(), 3)
	d := NewDecoder(m.Pack(), DecoderOptions{Threads: 2})
	t.Cleanup(d.Close)
	caches := make([]*Cache, 8)
	for i := range caches {
		caches[i] = d.NewCache(128)
	}
	ids := make([]int32, 8)
	step := func() {
		if _, err := d.Step(caches, ids); err != nil {
			t.Fatal(err)
		}
		for _, c := range caches {
			c.Truncate(60)
		}
	}
	for range 61 {
		step()
	}
	if n := testing.AllocsPerRun(20, step); n > 0 {
		t.Errorf("%g allocations per step", n)
	}
}
