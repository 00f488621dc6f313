package metric

import (
	"math"
	"math/rand/v2"
	"sort"
)

// Resamples is how often a bootstrap draws (method.md 9).
const Resamples = 1000

// newRand returns the generator of a bootstrap; equal seeds give equal bands.
func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)) }

// percentiles returns the 95 % band of drawn statistics, which it sorts.
func percentiles(drawn []float64) (low, high float64) {
	sort.Float64s(drawn)
	return quantile(drawn, 0.025), quantile(drawn, 0.975)
}

// BootstrapMean returns the 95 % percentile bootstrap band of the mean. NaN for no values.
func BootstrapMean(v []float64, seed uint64) (low, high float64) {
	if len(v) == 0 {
		return math.NaN(), math.NaN()
	}
	rng := newRand(seed)
	drawn := make([]float64, Resamples)
	for i := range drawn {
		sum := 0.0
		for range v {
			sum += v[rng.IntN(len(v))]
		}
		drawn[i] = sum / float64(len(v))
	}
	return percentiles(drawn)
}

// PairedDifference returns the mean of a-b over the same items and its 95 % bootstrap band over items. a and b are
// parallel; NaN for no items or lists of different length.
func PairedDifference(a, b []float64, seed uint64) (mean, low, high float64) {
	if len(a) != len(b) || len(a) == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	d := make([]float64, len(a))
	sum := 0.0
	for i := range d {
		d[i] = a[i] - b[i]
		sum += d[i]
	}
	low, high = BootstrapMean(d, seed)
	return sum / float64(len(d)), low, high
}
