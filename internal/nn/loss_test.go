package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"agentrl/internal/rl"
)

// TestTokenLossAgreesWithTheMethod compares the fused loss with the method's own functions and its derivative with
// central differences, over both sides of every clip.
func TestTokenLossAgreesWithTheMethod(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 3))
	l := Loss{Kind: PPO, ClipLow: 0.2, ClipHigh: 0.28, ClipDual: 3, KLCoef: 0.4}
	clip := rl.Clip{Low: l.ClipLow, High: l.ClipHigh, Dual: l.ClipDual}
	var clipped, free int
	for range 4000 {
		logp, adv := -3*rng.Float64(), rng.NormFloat64()
		old, ref := logp+rng.NormFloat64(), logp+rng.NormFloat64()
		got := l.token(logp, old, ref, adv, true)
		want, isClipped := rl.TokenLoss(adv, logp, old, clip)
		want += l.KLCoef * rl.K3(logp, ref)
		if math.Abs(got.loss-want) > 1e-9*(1+math.Abs(want)) || got.clipped != isClipped {
			t.Fatalf("loss %g clipped %v, want %g %v (adv %g, logp %g, old %g)", got.loss, got.clipped, want, isClipped, adv, logp, old)
		}
		const h = 1e-6
		up, down := l.token(logp+h, old, ref, adv, true), l.token(logp-h, old, ref, adv, true)
		if up.clipped != down.clipped {
			continue // a kink lies between
		}
		if d := (up.loss - down.loss) / (2 * h); math.Abs(d-got.dlogp) > 1e-5*(1+math.Abs(d)) {
			t.Fatalf("derivative %g, want %g", got.dlogp, d)
		}
		if got.clipped {
			clipped++
		} else {
			free++
		}
	}
	if clipped < 500 || free < 500 {
		t.Errorf("only %d clipped and %d free tokens", clipped, free)
	}
}

// TestExtremeTokensStayFinite looks at log-probs that are far apart.
func TestExtremeTokensStayFinite(t *testing.T) {
	t.Parallel()
	l := Loss{Kind: PPO, ClipLow: 0.2, ClipHigh: 0.2, KLCoef: 1}
	for _, x := range [][4]float64{{-1, -900, -1, -2}, {-900, -1, -1, 2}, {-900, -1, -1, -2}, {-1, -1, -900, 1}} {
		got := l.token(x[0], x[1], x[2], x[3], true)
		if !finite(got.loss, got.dlogp, got.kl, got.ratio) || got.kl > klBound {
			t.Errorf("%v: %+v", x, got)
		}
	}
}
