package rl

import "math"

// Clip bounds the importance ratio (method.md 7.1). Dual 0 is off, otherwise above 1.
type Clip struct {
	Low, High, Dual float64
}

// TokenLoss is the clipped loss of one token and whether a clip was active.
//
// With r = exp(logp - old): L = max(-A r, -A clip(r, 1-Low, 1+High)); for A < 0 additionally L = min(L, -A Dual).
func TokenLoss(advantage, logp, old float64, c Clip) (loss float64, clipped bool) {
	r := math.Exp(logp - old)
	l1 := -advantage * r
	l2 := -advantage * math.Max(1-c.Low, math.Min(1+c.High, r))
	loss, clipped = l1, l2 > l1
	if clipped {
		loss = l2
	}
	if c.Dual > 0 && advantage < 0 && -advantage*c.Dual < loss {
		return -advantage * c.Dual, true
	}
	return loss, clipped
}

// K3 is the penalty of one token against the reference: exp(d) - d - 1 with d = ref - logp, clamped to [-10, 10].
func K3(logp, ref float64) float64 {
	d := ref - logp
	return math.Max(-10, math.Min(10, math.Exp(d)-d-1))
}

// Entropy is -sum p log p of a distribution given by logits at a temperature.
func Entropy(logits []float64, temperature float64) float64 {
	if len(logits) == 0 {
		return 0
	}
	m := math.Inf(-1)
	for _, l := range logits {
		m = math.Max(m, l/temperature)
	}
	var z, s float64
	for _, l := range logits {
		e := math.Exp(l/temperature - m)
		z += e
		s += e * (l/temperature - m)
	}
	return math.Log(z) - s/z
}

// TokenMean is the mean over all masked-in values of all sequences; 0 without any.
func TokenMean(values [][]float64, mask [][]bool) float64 {
	var sum float64
	n := 0
	for i := range values {
		for j, on := range mask[i] {
			if on {
				sum += values[i][j]
				n++
			}
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}

// SeqMean is the mean over sequences of their means over masked-in values. Sequences without any do not count.
func SeqMean(values [][]float64, mask [][]bool) float64 {
	var sum float64
	n := 0
	for i := range values {
		var s float64
		k := 0
		for j, on := range mask[i] {
			if on {
				s += values[i][j]
				k++
			}
		}
		if k > 0 {
			sum += s / float64(k)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return sum / float64(n)
}
