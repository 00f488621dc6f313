package metric

import (
	"math"
	"sort"
)

// Smooth is a debiased exponential moving average over (x, v), for drawing only. weight in [0, 1) is what remains of the
// past after one typical (median) distance in x; over uneven distances it fades accordingly. Values that are not numbers
// stay gaps and do not disturb the average. The result is parallel to v. x must grow.
func Smooth(x, v []float64, weight float64) []float64 {
	out := make([]float64, len(v))
	if !(weight > 0) {
		copy(out, v)
		return out
	}
	weight = math.Min(weight, 0.9999)
	unit := medianStep(x)
	num, den, last := 0.0, 0.0, math.NaN()
	for i, value := range v {
		if math.IsNaN(value) {
			out[i] = value
			continue
		}
		w := weight
		if !math.IsNaN(last) && unit > 0 {
			w = math.Pow(weight, (x[i]-last)/unit)
		}
		num = num*w + value*(1-w)
		den = den*w + (1 - w)
		last = x[i]
		if out[i] = num / den; den == 0 { // the same x again, at the start
			out[i] = value
		}
	}
	return out
}

func medianStep(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	d := make([]float64, len(x)-1)
	for i := range d {
		d[i] = x[i+1] - x[i]
	}
	sort.Float64s(d)
	return quantile(d, 0.5)
}

// quantile interpolates linearly between the two nearest of a sorted list; p in [0, 1]. NaN for an empty list.
func quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	pos := p * float64(len(sorted)-1)
	i := int(pos)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	f := pos - float64(i)
	return sorted[i]*(1-f) + sorted[i+1]*f
}
