package nn

import (
	"math"
	"slices"

	"agentrl/internal/errs"
)

// tokenTerm is what one target token adds to the loss, before weight and normaliser.
type tokenTerm struct {
	loss    float64
	dlogp   float64 // derivative of loss with respect to the token's log-prob
	kl      float64
	ratio   float64
	clipped bool
}

// maxLogRatio bounds |logp - old| so that a stale token cannot overflow the ratio.
const maxLogRatio = 20

// klBound is where method.md 7.1 clamps k3.
const klBound = 10

// token evaluates method.md 7.1 for one token. The entropy term is added where the whole distribution is known.
func (l Loss) token(logp, old, ref, adv float64, hasRef bool) tokenTerm {
	var t tokenTerm
	if l.Kind == CrossEntropy {
		t = tokenTerm{loss: -logp, dlogp: -1, ratio: 1}
	} else {
		t = l.ppo(logp, old, adv)
	}
	if hasRef {
		d := ref - logp
		k := math.Exp(d) - d - 1
		t.kl = min(k, klBound)
		if l.KLCoef != 0 {
			t.loss += l.KLCoef * t.kl
			if k < klBound {
				t.dlogp += l.KLCoef * (1 - math.Exp(d))
			}
		}
	}
	return t
}

func (l Loss) ppo(logp, old, adv float64) tokenTerm {
	diff := logp - old
	r := math.Exp(min(max(diff, -maxLogRatio), maxLogRatio))
	t := tokenTerm{ratio: r, loss: -adv * r, dlogp: -adv * r}
	if math.Abs(diff) > maxLogRatio {
		t.dlogp = 0
	}
	if c := -adv * min(max(r, 1-l.ClipLow), 1+l.ClipHigh); c > t.loss {
		t.loss, t.dlogp, t.clipped = c, 0, true
	}
	if l.ClipDual > 0 && adv < 0 {
		if c := -adv * l.ClipDual; t.loss > c {
			t.loss, t.dlogp, t.clipped = c, 0, true
		}
	}
	return t
}

// temperature is the positive divisor of the logits.
func (l Loss) temperature() float64 {
	if l.Temperature == 0 {
		return 1
	}
	return l.Temperature
}

func finite(xs ...float64) bool {
	return !slices.ContainsFunc(xs, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}

func (l Loss) validate() error {
	switch {
	case l.Kind != CrossEntropy && l.Kind != PPO:
		return errs.Field("loss", "unknown loss %q; allowed: %q, %q", l.Kind, CrossEntropy, PPO)
	case l.Reduction != TokenMean && l.Reduction != SeqMean:
		return errs.Field("reduction", "unknown reduction %q; allowed: %q, %q", l.Reduction, TokenMean, SeqMean)
	case !finite(l.Temperature, l.ClipLow, l.ClipHigh, l.ClipDual, l.KLCoef, l.EntropyCoef, l.Denominator):
		return errs.Field("loss", "every coefficient must be a finite number")
	case l.Temperature < 0:
		return errs.Field("temperature", "%g must be above 0", l.Temperature)
	case l.ClipLow < 0 || l.ClipLow > 1 || l.ClipHigh < 0:
		return errs.Field("clip", "low %g must be between 0 and 1 and high %g not negative", l.ClipLow, l.ClipHigh)
	case l.ClipDual != 0 && l.ClipDual <= 1:
		return errs.Field("clip_dual", "%g must exceed 1, or be 0 for off", l.ClipDual)
	case l.Denominator < 0:
		return errs.Field("denominator", "%g must not be negative", l.Denominator)
	}
	return nil
}

// checkBatch refuses what ForwardBackward cannot compute.
func (l Loss) checkBatch(batch []Datum, c Config) error {
	for i, d := range batch {
		n := len(d.Tokens)
		for _, s := range []struct {
			name string
			x    []float32
			need bool
		}{
			{"weights", d.Weights, true},
			{"old log-probs", d.OldLogprobs, l.Kind == PPO},
			{"advantages", d.Advantages, l.Kind == PPO},
			{"reference log-probs", d.RefLogprobs, l.KLCoef != 0},
		} {
			if s.x == nil && !s.need {
				continue
			}
			if len(s.x) != n {
				return errs.New(errs.Invalid, "sequence %d has %d tokens but %d %s", i, n, len(s.x), s.name)
			}
			for _, v := range s.x {
				if v-v != 0 {
					return errs.New(errs.Invalid, "sequence %d has %s that are not finite", i, s.name)
				}
			}
		}
		if err := checkTokens(i, d.Tokens, c); err != nil {
			return err
		}
		if n > 0 && d.Weights[0] != 0 {
			return errs.New(errs.Invalid, "sequence %d trains its first token, which nothing predicts; its weight must be 0", i)
		}
	}
	return nil
}

func checkTokens(i int, ids []int32, c Config) error {
	if len(ids) > c.Context+1 {
		return errs.New(errs.Invalid, "sequence %d has %d tokens; the context holds %d", i, len(ids), c.Context)
	}
	for _, id := range ids {
		if id < 0 || int(id) >= c.Vocab {
			return errs.New(errs.Invalid, "sequence %d: token id %d is outside 0 to %d", i, id, c.Vocab-1)
		}
	}
	return nil
}

// scales returns the factor of each datum's weighted terms: one over the normaliser of the whole batch.
func (l Loss) scales(batch []Datum) ([]float64, error) {
	sums, total, seqs := make([]float64, len(batch)), 0.0, 0.0
	for i, d := range batch {
		for _, w := range d.Weights {
			sums[i] += float64(w)
		}
		total += sums[i]
		if sums[i] != 0 {
			seqs++
		}
	}
	den := l.Denominator
	if den == 0 {
		den = total
		if l.Reduction == SeqMean {
			den = seqs
		}
	}
	if !(den > 0) {
		return nil, errs.New(errs.Invalid, "the weights of the batch sum to %g; there is nothing to train on", total)
	}
	for i, s := range sums {
		switch {
		case l.Reduction == TokenMean:
			sums[i] = 1 / den
		case s != 0:
			sums[i] = 1 / (den * s)
		}
	}
	return sums, nil
}
