package nn

import (
	"math"

	"agentrl/internal/errs"
)

// adamState is the optimizer's memory.
type adamState struct {
	step  int64
	m, v  []float32
	parts []adamPart
	sums  []float64
}

// adamPart is one task's share of the parameters, all of one kind.
type adamPart struct {
	lo, hi int
	decay  bool
}

// adamStep holds the numbers of one step.
type adamStep struct {
	lr, b1, b2, eps, decay, clip, fix1, fix2 float32
}

const adamChunkLen = 1 << 14

func newAdamState(m *Model) adamState {
	s := adamState{m: make([]float32, m.lay.size), v: make([]float32, m.lay.size)}
	at := 0
	for _, p := range m.Params() {
		for lo := 0; lo < len(p.Data); lo += adamChunkLen {
			s.parts = append(s.parts, adamPart{at + lo, at + min(lo+adamChunkLen, len(p.Data)), len(p.Shape) > 1})
		}
		at += len(p.Data)
	}
	s.sums = make([]float64, len(s.parts))
	return s
}

// OptimStep clips the accumulated gradient to the global norm, applies AdamW and clears the gradient. When the gradient
// is not finite, weights, moments and the step count stay as they are.
func (t *Trainer) OptimStep(p AdamParams) (StepStats, error) {
	if p.Beta1 == 0 {
		p.Beta1 = 0.9
	}
	if p.Beta2 == 0 {
		p.Beta2 = 0.95
	}
	if p.Eps == 0 {
		p.Eps = 1e-8
	}
	if err := p.validate(); err != nil {
		return StepStats{}, err
	}
	a := &t.adam
	t.pool.run(len(a.parts), t.tasks.sqr)
	sum := 0.0
	for _, s := range a.sums {
		sum += s
	}
	norm := math.Sqrt(sum)
	if !finite(norm) {
		t.ZeroGrad()
		return StepStats{GradNorm: norm, Skipped: true}, nil
	}
	clip := 1.0
	if p.GradClip > 0 && norm > p.GradClip {
		clip = p.GradClip / norm
	}
	a.step++
	n := float64(a.step)
	t.tasks.adamParams = adamStep{
		lr: float32(p.LearningRate), b1: float32(p.Beta1), b2: float32(p.Beta2), eps: float32(p.Eps),
		decay: float32(p.LearningRate * p.WeightDecay), clip: float32(clip),
		fix1: float32(1 / (1 - math.Pow(p.Beta1, n))), fix2: float32(1 / (1 - math.Pow(p.Beta2, n))),
	}
	t.pool.run(len(a.parts), t.tasks.adam)
	t.ZeroGrad()
	return StepStats{GradNorm: norm}, nil
}

func (p AdamParams) validate() error {
	switch {
	case !finite(p.LearningRate, p.Beta1, p.Beta2, p.Eps, p.WeightDecay, p.GradClip):
		return errs.Field("adam", "every setting must be a finite number")
	case p.LearningRate < 0:
		return errs.Field("learning_rate", "%g must not be negative", p.LearningRate)
	case p.Beta1 < 0 || p.Beta1 >= 1 || p.Beta2 < 0 || p.Beta2 >= 1:
		return errs.Field("betas", "%g and %g must be from 0 to below 1", p.Beta1, p.Beta2)
	case p.Eps <= 0:
		return errs.Field("eps", "%g must be above 0", p.Eps)
	case p.WeightDecay < 0 || p.GradClip < 0:
		return errs.Field("adam", "weight decay %g and gradient clip %g must not be negative", p.WeightDecay, p.GradClip)
	}
	return nil
}

func (t *Trainer) sqrChunk(_, i int) {
	g := t.grad[t.adam.parts[i].lo:t.adam.parts[i].hi]
	t.adam.sums[i] = float64(t.kn.Dot(g, g))
}

func (t *Trainer) adamChunk(_, i int) {
	part, s := t.adam.parts[i], t.tasks.adamParams
	w, g := t.model.flat[part.lo:part.hi], t.grad[part.lo:part.hi]
	m, v := t.adam.m[part.lo:part.hi][:len(w)], t.adam.v[part.lo:part.hi][:len(w)]
	g = g[:len(w)]
	decay := s.decay
	if !part.decay {
		decay = 0
	}
	for j, x := range w {
		gr := g[j] * s.clip
		m[j] = float32(s.b1*m[j]) + float32((1-s.b1)*gr)
		v[j] = float32(s.b2*v[j]) + float32((1-s.b2)*float32(gr*gr))
		up := float32(m[j]*s.fix1) / (sqrtf(float32(v[j]*s.fix2)) + s.eps)
		w[j] = x - float32(decay*x) - float32(s.lr*up)
	}
}

// OptimizerState returns the number of steps done and the two moments under the parameter names; the trainer's memory.
func (t *Trainer) OptimizerState() (step int64, m, v []Param) {
	return t.adam.step, params(t.cfg, t.adam.m), params(t.cfg, t.adam.v)
}

// SetOptimizerState restores what OptimizerState returned; every parameter must be there with its size.
func (t *Trainer) SetOptimizerState(step int64, m, v []Param) error {
	if step < 0 {
		return errs.New(errs.Invalid, "the optimizer's step %d is negative", step)
	}
	_, dm, dv := t.OptimizerState()
	for _, pair := range []struct {
		what     string
		to, from []Param
	}{{"first moment", dm, m}, {"second moment", dv, v}} {
		if err := copyParams(pair.to, pair.from, pair.what); err != nil {
			return err
		}
	}
	t.adam.step = step
	return nil
}

// copyParams copies by name; every target must have its source.
func copyParams(to, from []Param, what string) error {
	byName := make(map[string]Param, len(from))
	for _, p := range from {
		byName[p.Name] = p
	}
	for _, p := range to {
		if s, ok := byName[p.Name]; !ok || len(s.Data) != len(p.Data) {
			return errs.New(errs.Invalid, "the %s of %s is missing or has %d numbers instead of %d", what, p.Name, len(s.Data), len(p.Data))
		}
	}
	for _, p := range to {
		copy(p.Data, byName[p.Name].Data)
	}
	return nil
}
