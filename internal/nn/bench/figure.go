// Package bench measures the CPU model's arithmetic, training and decoding (compute.md 6). Rates are per second of
// process CPU time, so other work on the machine disturbs them less than it would disturb wall time.
package bench

import (
	"slices"
	"time"
)

// Repetitions of every measurement; the median counts.
const repetitions = 7

// seconds runs f until min CPU time has passed and returns the CPU seconds of one call.
func seconds(minimum time.Duration, f func()) float64 {
	for n := 1; ; n *= 2 {
		start := cpuTime()
		for range n {
			f()
		}
		if d := cpuTime() - start; d >= minimum {
			return d.Seconds() / float64(n)
		}
	}
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
