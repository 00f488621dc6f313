package metric

import "math"

// Bin merges consecutive buckets until at most px are left: those that begin in the same of px equal stretches of x
// become one. Minimum and maximum stay exact. If px buckets hold the list already it is returned as it is.
func Bin(list []Bucket, px int) []Bucket {
	if px < 1 || len(list) <= px {
		return list
	}
	lo, hi := list[0].X0, list[len(list)-1].X0
	out := make([]Bucket, 0, px)
	last := -1
	for _, b := range list {
		bin := int((b.X0 - lo) / (hi - lo) * float64(px))
		bin = max(0, min(bin, px-1))
		if bin != last {
			if len(out) == px {
				return binByCount(list, px)
			}
			out = append(out, Bucket{})
			last = bin
		}
		out[len(out)-1].Add(b)
	}
	return out
}

// binByCount merges runs of equal length, for lists whose x does not grow.
func binByCount(list []Bucket, px int) []Bucket {
	run := int(math.Ceil(float64(len(list)) / float64(px)))
	out := make([]Bucket, 0, px)
	for i, b := range list {
		if i%run == 0 {
			out = append(out, Bucket{})
		}
		out[len(out)-1].Add(b)
	}
	return out
}

// Exact reports whether every bucket holds a single sample.
func Exact(list []Bucket) bool {
	for _, b := range list {
		if b.Count+b.NaN != 1 {
			return false
		}
	}
	return true
}

// BucketsPerSeries bounds the buckets of each of n series of one chart so that the chart draws at most 24,000 points
// (dashboard.md 5), five numbers per bucket: first, minimum, maximum, last and mean.
func BucketsPerSeries(px, n int) int {
	const drawn = 24000
	if n < 1 {
		n = 1
	}
	return max(1, min(px, drawn/5/n))
}
