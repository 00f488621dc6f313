// Package rl is the learning method as pure functions: rewards, advantages, filters, and the reference form of the
// loss that engines are tested against.
package rl

import "math"

// Epsilon is added to a standard deviation before dividing by it (method.md 2 and 4).
const Epsilon = 1e-6

// AllEqual says whether all values are exactly the same. It is decided before any arithmetic: a mean of equal floats
// can differ from them in the last bit, which division by Epsilon would blow up.
func AllEqual(values []float64) bool {
	for _, v := range values {
		if v != values[0] {
			return false
		}
	}
	return true
}

// MeanStd returns the mean and the unbiased standard deviation in two passes. Of fewer than two values the deviation
// is 0.
func MeanStd(values []float64) (mean, std float64) {
	if len(values) == 0 {
		return 0, 0
	}
	for _, v := range values {
		mean += v
	}
	mean /= float64(len(values))
	if len(values) < 2 {
		return mean, 0
	}
	var sum float64
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(sum / float64(len(values)-1))
}

// GroupAdvantages returns the GRPO advantage of each member of one group (method.md 2): its reward minus the mean,
// divided by the unbiased deviation plus Epsilon when normByStd is set. A group whose rewards are all equal gets
// exactly 0; a group of one keeps its reward.
func GroupAdvantages(rewards []float64, normByStd bool) []float64 {
	out := make([]float64, len(rewards))
	switch {
	case len(rewards) == 1:
		out[0] = rewards[0]
		return out
	case AllEqual(rewards):
		return out
	}
	mean, std := MeanStd(rewards)
	for i, r := range rewards {
		out[i] = r - mean
		if normByStd {
			out[i] /= std + Epsilon
		}
	}
	return out
}
