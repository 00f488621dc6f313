package native

import (
	"cmp"
	"math"
	"slices"

	"agentrl/internal/errs"
	"agentrl/internal/nn/kernel"
	"agentrl/internal/policy"
)

// drawer turns logits into one token. Not safe for concurrent use.
//
// Exponentials are float32, everything summed is float64: the error of a log-prob stays near 1e-7.
type drawer struct {
	kernel   kernel.Kernel
	scaled   []float32
	weights  []float32 // exp(logit/T - max)
	blocks   []float64 // sums of blockLen weights each
	mask     []bool
	order    []int32
	relative []float64
}

// blockLen is how many weights are summed together, so that a draw walks over blocks first.
const blockLen = 32

// drawn is one token. kept is the probability mass that truncation left, 1 without.
type drawn struct {
	id      int32
	logprob float32
	kept    float32
}

func truncates(s *policy.Sampling) bool {
	return s.TopK > 0 || s.TopP > 0 && s.TopP < 1 || s.MinP > 0
}

// draw takes the token that u in [0, 1) falls on. At temperature 0 it is the most likely one, with the log-prob of
// temperature 1. state may be nil.
func (d *drawer) draw(logits []float32, s *policy.Sampling, state policy.ConstraintState, u float64) (drawn, error) {
	v := len(logits)
	if cap(d.weights) < v {
		d.scaled, d.weights = make([]float32, v), make([]float32, v)
		d.blocks, d.mask = make([]float64, (v+blockLen-1)/blockLen), make([]bool, v)
	}
	scaled, w := logits, d.weights[:v]
	if s.Temperature > 0 && s.Temperature != 1 {
		scaled = d.scaled[:v]
		d.kernel.ScaleAdd(scaled, logits, logits, float32(1/s.Temperature), 0)
	}
	top := d.kernel.Max(scaled)
	d.kernel.Exp(w, scaled, top)
	total := d.sum(w)
	if math.IsNaN(total) || math.IsInf(total, 0) || total < 0.5 {
		return drawn{}, errs.New(errs.Internal, "the model's output is not finite")
	}
	var id int32
	kept := 1.0
	switch {
	case state != nil || truncates(s):
		var mass float64
		var err error
		if id, mass, err = d.truncated(scaled, s, state, float64(top), u); err != nil {
			return drawn{}, err
		}
		kept = mass / total
	case s.Temperature <= 0:
		id = argmax(w)
	default:
		id = d.pick(w, u*total)
	}
	return drawn{
		id:      id,
		logprob: float32(float64(scaled[id]) - float64(top) - math.Log(total)),
		kept:    float32(kept),
	}, nil
}

// sum fills blocks and returns the sum of all weights.
func (d *drawer) sum(w []float32) float64 {
	var total float64
	for b := range (len(w) + blockLen - 1) / blockLen {
		var s0, s1, s2, s3 float64
		part := w[b*blockLen : min((b+1)*blockLen, len(w))]
		i := 0
		for ; i+3 < len(part); i += 4 {
			s0 += float64(part[i])
			s1 += float64(part[i+1])
			s2 += float64(part[i+2])
			s3 += float64(part[i+3])
		}
		for ; i < len(part); i++ {
			s0 += float64(part[i])
		}
		d.blocks[b] = (s0 + s1) + (s2 + s3)
		total += d.blocks[b]
	}
	return total
}

// pick returns the token in whose share of the running sum target falls.
func (d *drawer) pick(w []float32, target float64) int32 {
	last := int32(-1) // the last token of positive weight, should rounding carry the target past the end
	n := (len(w) + blockLen - 1) / blockLen
	for b := range n {
		if target >= d.blocks[b] && b < n-1 {
			target -= d.blocks[b]
			continue
		}
		for i := b * blockLen; i < len(w); i++ {
			if w[i] <= 0 {
				continue
			}
			last = int32(i)
			if target < float64(w[i]) {
				return last
			}
			target -= float64(w[i])
		}
	}
	if last < 0 {
		return argmax(w)
	}
	return last
}

func argmax(w []float32) int32 {
	best := 0
	for i, x := range w {
		if x > w[best] {
			best = i
		}
	}
	return int32(best)
}

// truncated draws among what the constraint, top-k, top-p and min-p, applied in this order, leave over, and returns the
// kept mass in units of exp(top). Weights are taken relative to the best allowed token, since all that is allowed may be
// far too unlikely to be represented otherwise.
func (d *drawer) truncated(logits []float32, s *policy.Sampling, state policy.ConstraintState, top, u float64) (int32, float64, error) {
	order, err := d.allowed(len(logits), state)
	if err != nil {
		return 0, 0, err
	}
	// Ties go to the smaller id, so equal logits truncate alike everywhere.
	better := func(a, b int32) int { return cmp.Or(cmp.Compare(logits[b], logits[a]), cmp.Compare(a, b)) }
	best := order[0]
	if truncates(s) {
		slices.SortFunc(order, better)
		best = order[0]
	} else {
		for _, id := range order[1:] {
			if better(id, best) < 0 {
				best = id
			}
		}
	}
	if s.TopK > 0 && s.TopK < len(order) {
		order = order[:s.TopK]
	}
	w := d.relative[:0]
	var mass float64
	for _, id := range order {
		x := math.Exp(float64(logits[id]) - float64(logits[best]))
		w = append(w, x)
		mass += x
	}
	d.relative = w
	if s.TopP > 0 && s.TopP < 1 {
		all := mass
		mass = 0
		for i, x := range w {
			if mass += x; mass >= s.TopP*all {
				w = w[:i+1]
				break
			}
		}
	}
	if s.MinP > 0 {
		mass = 0
		for i, x := range w {
			if x < s.MinP {
				w = w[:i]
				break
			}
			mass += x
		}
	}
	kept := mass * math.Exp(float64(logits[best])-top)
	if s.Temperature > 0 {
		target := u * mass
		for i, x := range w {
			if target < x {
				return order[i], kept, nil
			}
			target -= x
		}
	}
	return best, kept, nil
}

// allowed lists the ids that the constraint lets through, all of them without one.
func (d *drawer) allowed(vocab int, state policy.ConstraintState) ([]int32, error) {
	order := d.order[:0]
	if state == nil {
		for i := range vocab {
			order = append(order, int32(i))
		}
	} else {
		mask := d.mask[:vocab]
		clear(mask)
		state.Allow(mask)
		for i, ok := range mask {
			if ok {
				order = append(order, int32(i))
			}
		}
	}
	d.order = order
	if len(order) == 0 {
		return nil, errs.New(errs.Internal, "the decoding constraint allows no token")
	}
	return order, nil
}
