package nn

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"agentrl/internal/nn/kernel"
)

func tinyConfig() Config {
	return Config{Vocab: 37, Dim: 24, Layers: 2, Heads: 4, KVHeads: 2, FFN: 40, Context: 128, RopeBase: 10000, NormEps: 1e-6}
}

func mustModel(t testing.TB, c Config, seed uint64) *Model {
	t.Helper()
	m, err := NewModel(c, seed)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustTrainer(t testing.TB, m *Model, o TrainerOptions) *Trainer {
	t.Helper()
	tr, err := NewTrainer(m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.Close)
	return tr
}

// loud gives a model weights large enough that every part matters, gains included.
func loud(m *Model, rng *rand.Rand) {
	for _, p := range m.Params() {
		for i := range p.Data {
			if len(p.Shape) == 1 {
				p.Data[i] = 1 + 0.3*float32(rng.NormFloat64())
			} else {
				p.Data[i] = 0.2 * float32(rng.NormFloat64())
			}
		}
	}
}

// randomBatch makes sequences with masks, behaviour log-probs on both sides of the clip range, and references.
func randomBatch(m *Model, rng *rand.Rand, lengths ...int) []Datum {
	ref := newRef(m)
	var out []Datum
	for _, n := range lengths {
		d := Datum{
			Tokens: make([]int32, n), Weights: make([]float32, n), OldLogprobs: make([]float32, n),
			RefLogprobs: make([]float32, n), Advantages: make([]float32, n),
		}
		for i := range d.Tokens {
			d.Tokens[i] = int32(rng.IntN(m.cfg.Vocab))
		}
		z := ref.logits(d.Tokens)
		for i := 1; i < n; i++ {
			d.Weights[i] = []float32{0, 1, 1, 0.5}[rng.IntN(4)]
			lse := 0.0
			for _, v := range z[i-1] {
				lse += math.Exp(v)
			}
			lp := z[i-1][d.Tokens[i]] - math.Log(lse)
			d.OldLogprobs[i] = float32(lp + 0.8*rng.NormFloat64())
			d.RefLogprobs[i] = float32(lp + 0.6*rng.NormFloat64())
			d.Advantages[i] = float32(rng.NormFloat64())
		}
		out = append(out, d)
	}
	return out
}

func testLosses() map[string]Loss {
	return map[string]Loss{
		"cross-entropy":                      {Kind: CrossEntropy, Reduction: TokenMean},
		"cross-entropy by sequence, entropy": {Kind: CrossEntropy, Reduction: SeqMean, EntropyCoef: 0.1, Temperature: 0.7},
		"ppo":                                {Kind: PPO, Reduction: TokenMean, ClipLow: 0.2, ClipHigh: 0.28},
		"ppo, everything": {Kind: PPO, Reduction: SeqMean, ClipLow: 0.2, ClipHigh: 0.2, ClipDual: 3, KLCoef: 0.3,
			EntropyCoef: 0.05, Temperature: 1.3},
	}
}

// TestGradients compares every parameter tensor's gradient with central differences of the reference loss.
func TestGradients(t *testing.T) {
	t.Parallel()
	paths := []string{kernel.Generic}
	if k, err := kernel.New(""); err == nil && k.Name() != kernel.Generic {
		paths = append(paths, k.Name())
	}
	for name, loss := range testLosses() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(11, uint64(len(name))))
			m := mustModel(t, tinyConfig(), 1)
			loud(m, rng)
			batch := randomBatch(m, rng, 9, 2, 21)
			ref := newRef(m)
			want := ref.loss(batch, loss)
			var trainers []*Trainer
			for _, p := range paths {
				mm := m.Clone()
				mm.kn, _ = kernel.New(p)
				tr := mustTrainer(t, mm, TrainerOptions{Threads: 2, MicroBatchTokens: 12})
				out, err := tr.ForwardBackward(context.Background(), batch, loss)
				if err != nil {
					t.Fatal(err)
				}
				if math.Abs(out.Loss-want) > 1e-5*(1+math.Abs(want)) {
					t.Errorf("%s: loss %g, want %g", p, out.Loss, want)
				}
				trainers = append(trainers, tr)
			}
			checkGradients(t, trainers, ref, batch, loss, rng)
		})
	}
}

func checkGradients(t *testing.T, trainers []*Trainer, ref *refModel, batch []Datum, loss Loss, rng *rand.Rand) {
	t.Helper()
	const samples, h = 12, 1e-5
	for pi, p := range trainers[0].Gradients() {
		x := ref.p[p.Name]
		for range samples {
			i := rng.IntN(len(x))
			old := x[i]
			x[i] = old + h
			up := ref.loss(batch, loss)
			x[i] = old - h
			down := ref.loss(batch, loss)
			x[i] = old
			want := (up - down) / (2 * h)
			for _, tr := range trainers {
				got := float64(tr.Gradients()[pi].Data[i])
				if math.Abs(got-want) > 2e-4*math.Abs(want)+2e-6 {
					t.Errorf("%s: %s[%d] = %g, want %g", tr.Kernel(), p.Name, i, got, want)
				}
			}
		}
	}
}
