package nn

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"agentrl/internal/nn/kernel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func steps(t *testing.T, tr *Trainer, batch []Datum, loss Loss, n int) {
	t.Helper()
	for range n {
		if _, err := tr.ForwardBackward(context.Background(), batch, loss); err != nil {
			t.Fatal(err)
		}
		st, err := tr.OptimStep(AdamParams{LearningRate: 3e-3, WeightDecay: 0.01, GradClip: 1})
		if err != nil || st.Skipped || !(st.GradNorm > 0) {
			t.Fatalf("step: %+v, %v", st, err)
		}
	}
}

// TestTrainingIsDeterministic runs 20 steps with 1, 2 and 5 threads, twice, and once more with a stop at step 10.
func TestTrainingIsDeterministic(t *testing.T) {
	t.Parallel()
	start := mustModel(t, tinyConfig(), 5)
	batch := randomBatch(start, rand.New(rand.NewPCG(1, 9)), 40, 3, 110, 25)
	loss := testLosses()["ppo, everything"]
	want := ""
	for _, threads := range []int{1, 2, 5, 2} {
		m := start.Clone()
		steps(t, mustTrainer(t, m, TrainerOptions{Threads: threads, MicroBatchTokens: 120}), batch, loss, 20)
		if want == "" {
			want = m.Digest()
		} else if m.Digest() != want {
			t.Errorf("%d threads give other weights", threads)
		}
	}

	dir := t.TempDir()
	m := start.Clone()
	tr := mustTrainer(t, m, TrainerOptions{Threads: 1, MicroBatchTokens: 120})
	steps(t, tr, batch, loss, 10)
	if err := m.Save(filepath.Join(dir, "model"), map[string]string{"k": "v"}); err != nil {
		t.Fatal(err)
	}
	if err := tr.SaveOptimizer(filepath.Join(dir, "optimizer")); err != nil {
		t.Fatal(err)
	}
	loaded, meta, err := LoadModel(tinyConfig(), filepath.Join(dir, "model"))
	if err != nil || meta["k"] != "v" {
		t.Fatalf("load: %v, %v", meta, err)
	}
	again := mustTrainer(t, loaded, TrainerOptions{Threads: 2, MicroBatchTokens: 120})
	if err := again.LoadOptimizer(filepath.Join(dir, "optimizer")); err != nil {
		t.Fatal(err)
	}
	steps(t, again, batch, loss, 10)
	if loaded.Digest() != want {
		t.Error("resuming at step 10 gives other weights at step 20")
	}
}

// TestPathsAgree compares a whole step on both paths (compute.md 7.3).
func TestPathsAgree(t *testing.T) {
	t.Parallel()
	m := mustModel(t, tinyConfig(), 5)
	rng := rand.New(rand.NewPCG(2, 9))
	loud(m, rng)
	batch := randomBatch(m, rng, 40, 90)
	loss := testLosses()["ppo, everything"]
	var outs []LossOutput
	var grads [][]float32
	for _, name := range []string{kernel.Generic, ""} {
		mm := m.Clone()
		mm.kn, _ = kernel.New(name)
		tr := mustTrainer(t, mm, TrainerOptions{Threads: 1})
		out, err := tr.ForwardBackward(context.Background(), batch, loss)
		if err != nil {
			t.Fatal(err)
		}
		outs, grads = append(outs, out), append(grads, tr.grad)
	}
	for i := range outs[0].Logprobs {
		for j, v := range outs[0].Logprobs[i] {
			if math.Abs(float64(v-outs[1].Logprobs[i][j])) > 1e-5 {
				t.Fatalf("log-prob %d,%d: %g and %g", i, j, v, outs[1].Logprobs[i][j])
			}
		}
	}
	var diff, size float64
	for i, g := range grads[0] {
		diff += math.Pow(float64(g-grads[1][i]), 2)
		size += math.Pow(float64(g), 2)
	}
	if !(diff <= 1e-8*size) || size == 0 {
		t.Errorf("gradients differ by %g of %g", math.Sqrt(diff), math.Sqrt(size))
	}
}

// TestMicroBatchesDoNotMatter cuts the same batch differently and spreads it over two calls.
func TestMicroBatchesDoNotMatter(t *testing.T) {
	t.Parallel()
	m := mustModel(t, tinyConfig(), 5)
	rng := rand.New(rand.NewPCG(3, 9))
	loud(m, rng)
	batch := randomBatch(m, rng, 20, 30, 40, 10, 5)
	for name, loss := range testLosses() {
		var want []float32
		for _, micro := range []int{4096, 50, 1} {
			tr := mustTrainer(t, m.Clone(), TrainerOptions{Threads: 1, MicroBatchTokens: micro})
			if _, err := tr.ForwardBackward(context.Background(), batch, loss); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = tr.grad
			}
			near(t, name, tr.grad, want)
		}
		split := loss
		split.Denominator = 5
		if loss.Reduction == TokenMean {
			split.Denominator = 0
			for _, d := range batch {
				for _, w := range d.Weights {
					split.Denominator += float64(w)
				}
			}
		}
		tr := mustTrainer(t, m.Clone(), TrainerOptions{Threads: 1})
		for _, part := range [][]Datum{batch[:2], batch[2:]} {
			if _, err := tr.ForwardBackward(context.Background(), part, split); err != nil {
				t.Fatal(err)
			}
		}
		near(t, name+" in two calls", tr.grad, want)
	}
}

func near(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 1e-5*(1+math.Abs(float64(want[i]))) {
			t.Fatalf("%s: gradient %d is %g, want %g", what, i, got[i], want[i])
		}
	}
}

// TestReportedStatistics checks the means a step reports against the reference distribution.
func TestReportedStatistics(t *testing.T) {
	t.Parallel()
	m := mustModel(t, tinyConfig(), 5)
	rng := rand.New(rand.NewPCG(4, 9))
	loud(m, rng)
	batch := randomBatch(m, rng, 30, 12)
	loss := Loss{Kind: PPO, Reduction: TokenMean, ClipLow: 0.2, ClipHigh: 0.2, KLCoef: 0.1}
	var n, clipped, correct, ent, kl, ratio, worst float64
	ref := newRef(m)
	for _, d := range batch {
		z := ref.logits(d.Tokens)
		for i, w := range d.Weights {
			if w == 0 {
				continue
			}
			n++
			row, lse, best := z[i-1], 0.0, 0
			for j, v := range row {
				lse += math.Exp(v)
				if v > row[best] {
					best = j
				}
			}
			lse = math.Log(lse)
			for _, v := range row {
				ent -= math.Exp(v-lse) * (v - lse)
			}
			lp := row[d.Tokens[i]] - lse
			r := math.Exp(lp - float64(d.OldLogprobs[i]))
			ratio += r
			worst = max(worst, r)
			if a := float64(d.Advantages[i]); a > 0 && r > 1.2 || a < 0 && r < 0.8 {
				clipped++
			}
			if best == int(d.Tokens[i]) {
				correct++
			}
			x := float64(d.RefLogprobs[i]) - lp
			kl += math.Exp(x) - x - 1
		}
	}
	tr := mustTrainer(t, m, TrainerOptions{})
	out, err := tr.ForwardBackward(context.Background(), batch, loss)
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string][2]float64{
		"tokens": {float64(out.Tokens), n}, "clip fraction": {out.ClipFraction, clipped / n}, "correct": {out.Correct, correct / n},
		"entropy": {out.Entropy, ent / n}, "KL": {out.KL, kl / n}, "ratio": {out.RatioMean, ratio / n}, "largest ratio": {out.RatioMax, worst},
	} {
		if math.Abs(v[0]-v[1]) > 2e-5*(1+math.Abs(v[1])) {
			t.Errorf("%s is %g, want %g", name, v[0], v[1])
		}
	}
	if clipped == 0 || clipped == n {
		t.Errorf("%g of %g tokens clipped: the batch tests nothing", clipped, n)
	}
}

// TestOverfitsOneBatch is the smoke test of everything together.
func TestOverfitsOneBatch(t *testing.T) {
	t.Parallel()
	m := mustModel(t, tinyConfig(), 5)
	rng := rand.New(rand.NewPCG(5, 9))
	batch := randomBatch(m, rng, 16, 12, 20)
	tr := mustTrainer(t, m, TrainerOptions{Threads: 2})
	loss := 0.0
	for range 250 {
		out, err := tr.ForwardBackward(context.Background(), batch, Loss{Kind: CrossEntropy, Reduction: TokenMean})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.OptimStep(AdamParams{LearningRate: 5e-3, GradClip: 1}); err != nil {
			t.Fatal(err)
		}
		loss = out.Loss
	}
	if !(loss < 0.01) {
		t.Errorf("loss is %g after 250 steps", loss)
	}
}

// TestBanditFindsTheOptimum trains a policy on its own samples with PPO: token 7 pays 1, all others 0.
func TestBanditFindsTheOptimum(t *testing.T) {
	t.Parallel()
	m := mustModel(t, tinyConfig(), 6)
	tr := mustTrainer(t, m, TrainerOptions{Threads: 1})
	rng := rand.New(rand.NewPCG(6, 9))
	p := func() []float64 {
		d := NewDecoder(m.Pack(), DecoderOptions{Threads: 1})
		defer d.Close()
		z, err := d.Prefill(d.NewCache(4), []int32{1})
		if err != nil {
			t.Fatal(err)
		}
		out, sum := make([]float64, len(z)), 0.0
		for i, v := range z {
			out[i] = math.Exp(float64(v))
			sum += out[i]
		}
		for i := range out {
			out[i] /= sum
		}
		return out
	}
	for range 60 {
		probs := p()
		var batch []Datum
		var mean float64
		for range 64 {
			u, pick := rng.Float64(), 0
			for ; pick < len(probs)-1 && u > probs[pick]; pick++ {
				u -= probs[pick]
			}
			reward := float32(0)
			if pick == 7 {
				reward = 1
			}
			mean += float64(reward) / 64
			batch = append(batch, Datum{Tokens: []int32{1, int32(pick)}, Weights: []float32{0, 1},
				OldLogprobs: []float32{0, float32(math.Log(probs[pick]))}, Advantages: []float32{0, reward}})
		}
		for i := range batch {
			batch[i].Advantages[1] -= float32(mean)
		}
		if _, err := tr.ForwardBackward(context.Background(), batch, Loss{Kind: PPO, Reduction: TokenMean, ClipLow: 0.2, ClipHigh: 0.2}); err != nil {
			t.Fatal(err)
		}
		if _, err := tr.OptimStep(AdamParams{LearningRate: 1e-2, GradClip: 1}); err != nil {
			t.Fatal(err)
		}
	}
	if got := p()[7]; got < 0.9 {
		t.Errorf("the paying arm has probability %g", got)
	}
}

func TestTrainerRefusesBadInput(t *testing.T) {
	t.Parallel()
	m := mustModel(t, tinyConfig(), 5)
	tr := mustTrainer(t, m, TrainerOptions{Threads: 1})
	good := Loss{Kind: PPO, Reduction: TokenMean, ClipLow: 0.2, ClipHigh: 0.2}
	datum := func(change func(*Datum)) []Datum {
		d := Datum{Tokens: []int32{1, 2}, Weights: []float32{0, 1}, OldLogprobs: []float32{0, -1}, Advantages: []float32{0, 1}}
		change(&d)
		return []Datum{d}
	}
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		batch []Datum
		loss  func(*Loss)
	}{
		"nothing":        {nil, nil},
		"all masked":     {datum(func(d *Datum) { d.Weights[1] = 0 }), nil},
		"first trained":  {datum(func(d *Datum) { d.Weights[0] = 1 }), nil},
		"no weights":     {datum(func(d *Datum) { d.Weights = nil }), nil},
		"no old":         {datum(func(d *Datum) { d.OldLogprobs = nil }), nil},
		"short adv":      {datum(func(d *Datum) { d.Advantages = d.Advantages[:1] }), nil},
		"NaN adv":        {datum(func(d *Datum) { d.Advantages[1] = nan }), nil},
		"id":             {datum(func(d *Datum) { d.Tokens[0] = 37 }), nil},
		"long":           {datum(func(d *Datum) { *d = Datum{Tokens: make([]int32, 130), Weights: make([]float32, 130)} }), func(l *Loss) { l.Kind = CrossEntropy }},
		"KL without ref": {datum(func(*Datum) {}), func(l *Loss) { l.KLCoef = 1 }},
		"kind":           {datum(func(*Datum) {}), func(l *Loss) { l.Kind = "x" }},
		"reduction":      {datum(func(*Datum) {}), func(l *Loss) { l.Reduction = "" }},
		"dual":           {datum(func(*Datum) {}), func(l *Loss) { l.ClipDual = 1 }},
		"clip":           {datum(func(*Datum) {}), func(l *Loss) { l.ClipLow = -1 }},
		"temperature":    {datum(func(*Datum) {}), func(l *Loss) { l.Temperature = -1 }},
		"coefficient":    {datum(func(*Datum) {}), func(l *Loss) { l.EntropyCoef = math.Inf(1) }},
	} {
		loss := good
		if c.loss != nil {
			c.loss(&loss)
		}
		if _, err := tr.ForwardBackward(context.Background(), c.batch, loss); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, a := range map[string]AdamParams{
		"rate": {LearningRate: -1}, "NaN": {LearningRate: math.NaN()}, "beta": {Beta1: 1}, "eps": {Eps: -1}, "clip": {GradClip: -1},
	} {
		if _, err := tr.OptimStep(a); err == nil {
			t.Errorf("adam %s: no error", name)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := tr.ForwardBackward(ctx, datum(func(*Datum) {}), good); err == nil {
		t.Error("a cancelled call succeeded")
	}
}

func TestTrainingDoesNotAllocateMuch(t *testing.T) {
	m := mustModel(t, tinyConfig(), 5)
	tr := mustTrainer(t, m, TrainerOptions{Threads: 2})
	batch := randomBatch(m, rand.New(rand.NewPCG(7, 9)), 20, 40, 60)
	step := func() { steps(t, tr, batch, testLosses()["ppo"], 1) }
	step()
	// What the caller gets is new: one slice of log-probs per sequence, their list, and the sequences' factors.
	if n := testing.AllocsPerRun(10, step); n > float64(len(batch)+3) {
		t.Errorf("%g allocations per step", n)
	}
}
