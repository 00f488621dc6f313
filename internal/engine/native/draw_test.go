package native

import (
	"math"
	"testing"

	"agentrl/internal/errs"
	"agentrl/internal/nn/kernel"
	"agentrl/internal/policy"
)

// logitsOf gives log-probabilities as logits.
func logitsOf(p ...float64) []float32 {
	out := make([]float32, len(p))
	for i, x := range p {
		out[i] = float32(math.Log(x)) + 3 // a shift changes nothing
	}
	return out
}

type only map[int32]bool

func (o only) Begin() policy.ConstraintState { return o }
func (o only) Accept(int32)                  {}
func (o only) Allow(mask []bool) {
	for id := range o {
		mask[id] = true
	}
}

func paths(t *testing.T) map[string]kernel.Kernel {
	t.Helper()
	out := map[string]kernel.Kernel{}
	for _, name := range []string{kernel.Generic, ""} {
		k, err := kernel.New(name)
		if err != nil {
			t.Fatal(err)
		}
		out[k.Name()] = k
	}
	return out
}

func TestDrawByHand(t *testing.T) {
	t.Parallel()
	logits := logitsOf(0.1, 0.4, 0.2, 0.3)
	tests := []struct {
		name    string
		s       policy.Sampling
		state   policy.ConstraintState
		u       float64
		id      int32
		logprob float64
		kept    float64
	}{
		{"first", policy.Sampling{Temperature: 1}, nil, 0.05, 0, math.Log(0.1), 1},
		{"second", policy.Sampling{Temperature: 1}, nil, 0.11, 1, math.Log(0.4), 1},
		{"last", policy.Sampling{Temperature: 1}, nil, 0.9999999, 3, math.Log(0.3), 1},
		{"greedy", policy.Sampling{}, nil, 0.05, 1, math.Log(0.4), 1},
		// At temperature 0.5 the weights are squares: 0.01, 0.16, 0.04, 0.09 of 0.3.
		{"temperature", policy.Sampling{Temperature: 0.5}, nil, 0.16 / 0.3, 1, math.Log(0.16 / 0.3), 1},
		{"top-k", policy.Sampling{Temperature: 1, TopK: 2}, nil, 0.6, 3, math.Log(0.3), 0.7},
		{"top-k of one", policy.Sampling{Temperature: 1, TopK: 1}, nil, 0.99, 1, math.Log(0.4), 0.4},
		{"top-p", policy.Sampling{Temperature: 1, TopP: 0.65}, nil, 0.99, 3, math.Log(0.3), 0.7},
		{"top-p off", policy.Sampling{Temperature: 1, TopP: 1}, nil, 0.05, 0, math.Log(0.1), 1},
		{"min-p", policy.Sampling{Temperature: 1, MinP: 0.45}, nil, 0.99, 2, math.Log(0.2), 0.9},
		{"constraint", policy.Sampling{Temperature: 1}, only{0: true, 2: true}, 0.3, 0, math.Log(0.1), 0.3},
		{"constraint and top-p of it", policy.Sampling{Temperature: 1, TopP: 0.6}, only{0: true, 2: true}, 0.99, 2, math.Log(0.2), 0.2},
		{"greedy under constraint", policy.Sampling{}, only{0: true, 2: true}, 0.99, 2, math.Log(0.2), 0.3},
	}
	for name, k := range paths(t) {
		d := drawer{kernel: k}
		for _, tt := range tests {
			got, err := d.draw(logits, &tt.s, tt.state, tt.u)
			if err != nil {
				t.Errorf("%s, %s: %v", name, tt.name, err)
				continue
			}
			if got.id != tt.id || math.Abs(float64(got.logprob)-tt.logprob) > 1e-6 || math.Abs(float64(got.kept)-tt.kept) > 1e-6 {
				t.Errorf("%s, %s: token %d, log-prob %v, kept %v; want %d, %v, %v", name, tt.name, got.id, got.logprob, got.kept, tt.id, tt.logprob, tt.kept)
			}
		}
	}
}

func TestDrawFollowsTheDistribution(t *testing.T) {
	t.Parallel()
	p := make([]float64, 100)
	var sum float64
	for i := range p {
		p[i] = float64(i%7 + 1)
		sum += p[i]
	}
	d := drawer{kernel: paths(t)[kernel.Generic]}
	counts := make([]float64, len(p))
	const n = 200000
	s := policy.Sampling{Temperature: 1}
	logits := logitsOf(p...)
	for i := range n {
		got, err := d.draw(logits, &s, nil, policy.Uniform(policy.Hash(5, uint64(i))))
		if err != nil {
			t.Fatal(err)
		}
		counts[got.id]++
	}
	var chi float64
	for i := range p {
		want := n * p[i] / sum
		chi += (counts[i] - want) * (counts[i] - want) / want
	}
	// 99 degrees of freedom: mean 99, standard deviation 14.
	if chi > 170 {
		t.Errorf("chi-squared %.1f is too large", chi)
	}
}

func TestDrawRefuses(t *testing.T) {
	t.Parallel()
	for name, k := range paths(t) {
		d := drawer{kernel: k}
		nan := float32(math.NaN())
		for what, logits := range map[string][]float32{"not a number": {1, nan, 2}, "infinite": {1, float32(math.Inf(1)), 2}} {
			if _, err := d.draw(logits, &policy.Sampling{Temperature: 1}, nil, 0.5); errs.CodeOf(err) != errs.Internal || err == nil {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if _, err := d.draw(logitsOf(0.5, 0.5), &policy.Sampling{Temperature: 1}, only{}, 0.5); err == nil {
			t.Errorf("%s: a constraint that allows nothing was accepted", name)
		}
		// What is allowed may be far too unlikely to be represented.
		got, err := d.draw([]float32{500, -510, -500}, &policy.Sampling{Temperature: 1}, only{1: true, 2: true}, 0.1)
		if err != nil || got.id != 2 || got.logprob != -1000 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
