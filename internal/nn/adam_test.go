package nn

import (
	"math"
	"testing"
)

// TestAdamAgainstClosedForm takes two steps with known gradients. With constant gradient g the bias-corrected moments are
// g and g^2 in both steps, so each moves by lr*g/(|g|+eps), after decay of matrices by lr*wd.
func TestAdamAgainstClosedForm(t *testing.T) {
	t.Parallel()
	m := mustModel(t, tinyConfig(), 5)
	tr := mustTrainer(t, m, TrainerOptions{Threads: 2})
	start := m.Clone()
	const lr, wd, eps = 0.01, 0.1, 1e-3
	g := func(i int) float64 { return 0.02 * float64(i%7-3) }
	for range 2 {
		for i := range tr.grad {
			tr.grad[i] = float32(g(i))
		}
		st, err := tr.OptimStep(AdamParams{LearningRate: lr, WeightDecay: wd, Eps: eps})
		if err != nil || st.Skipped {
			t.Fatal(st, err)
		}
		norm := 0.0
		for i := range tr.grad {
			norm += g(i) * g(i)
		}
		if math.Abs(st.GradNorm-math.Sqrt(norm)) > 1e-4*st.GradNorm {
			t.Fatalf("norm %g, want %g", st.GradNorm, math.Sqrt(norm))
		}
	}
	at := 0
	for pi, p := range start.Params() {
		for i, w := range p.Data {
			x := float64(w)
			for range 2 {
				if len(p.Shape) > 1 {
					x *= 1 - lr*wd
				}
				x -= lr * g(at) / (math.Abs(g(at)) + eps)
			}
			if got := float64(m.Params()[pi].Data[i]); math.Abs(got-x) > 2e-6 {
				t.Fatalf("%s[%d] is %g, want %g", p.Name, i, got, x)
			}
			at++
		}
	}
	for i := range tr.grad {
		if tr.grad[i] != 0 {
			t.Fatal("the gradient was not cleared")
		}
	}
}

// TestAdamChangingGradient follows one weight by hand: gradients 0.5 then -0.25, betas 0.9 and 0.99.
func TestAdamChangingGradient(t *testing.T) {
	t.Parallel()
	m := mustModel(t, tinyConfig(), 5)
	tr := mustTrainer(t, m, TrainerOptions{Threads: 1})
	m.flat[0] = 1
	for _, g := range []float32{0.5, -0.25} {
		tr.grad[0] = g
		if _, err := tr.OptimStep(AdamParams{LearningRate: 0.1, Beta2: 0.99}); err != nil {
			t.Fatal(err)
		}
	}
	// m: 0.05, 0.02; v: 0.0025, 0.0031; corrected in step 2: 0.02/0.19 and 0.0031/0.0199.
	v := 0.99*0.0025 + 0.01*0.0625
	want := 1 - 0.1 - 0.1*(0.02/0.19)/math.Sqrt(v/0.0199)
	if math.Abs(float64(m.flat[0])-want) > 1e-6 {
		t.Errorf("weight is %g, want %g", m.flat[0], want)
	}
}

func TestClipAndSkip(t *testing.T) {
	t.Parallel()
	m := mustModel(t, tinyConfig(), 5)
	tr := mustTrainer(t, m, TrainerOptions{Threads: 1})
	tr.grad[3], tr.grad[4] = 30, 40
	if st, err := tr.OptimStep(AdamParams{GradClip: 5}); err != nil || math.Abs(st.GradNorm-50) > 1e-4 {
		t.Fatalf("%+v, %v", st, err)
	}
	if got := float64(tr.adam.m[3]); math.Abs(got-0.3) > 1e-6 { // 30 * 5/50 * (1-0.9)
		t.Errorf("clipped moment is %g, want 0.3", got)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(-1)} {
		before, moment := m.Digest(), tr.adam.m[3]
		tr.grad[9] = float32(bad)
		st, err := tr.OptimStep(AdamParams{LearningRate: 1})
		if err != nil || !st.Skipped {
			t.Fatalf("%g: %+v, %v", bad, st, err)
		}
		if m.Digest() != before || tr.adam.step != 1 || tr.adam.m[3] != moment || tr.grad[9] != 0 {
			t.Errorf("%g: a skipped step left traces", bad)
		}
	}
}

func TestOptimizerStateRoundTrip(t *testing.T) {
	t.Parallel()
	a := mustTrainer(t, mustModel(t, tinyConfig(), 5), TrainerOptions{Threads: 1})
	a.grad[5] = 1
	if _, err := a.OptimStep(AdamParams{LearningRate: 0.1}); err != nil {
		t.Fatal(err)
	}
	b := mustTrainer(t, mustModel(t, tinyConfig(), 5), TrainerOptions{Threads: 1})
	step, m, v := a.OptimizerState()
	if err := b.SetOptimizerState(step, m, v); err != nil {
		t.Fatal(err)
	}
	if b.adam.step != 1 || b.adam.m[5] != a.adam.m[5] || b.adam.v[5] != a.adam.v[5] || a.adam.m[5] == 0 {
		t.Error("the state did not arrive")
	}
	if b.SetOptimizerState(step, m[1:], v) == nil || b.SetOptimizerState(-1, m, v) == nil {
		t.Error("an incomplete state was accepted")
	}
}
