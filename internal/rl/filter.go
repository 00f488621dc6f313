package rl

// Effective splits groups into those whose rewards differ and those that teach nothing because all are equal, by
// index and in order (dynamic sampling, method.md 7.3).
func Effective(rewards [][]float64) (keep, drop []int) {
	for i, r := range rewards {
		if AllEqual(r) {
			drop = append(drop, i)
		} else {
			keep = append(keep, i)
		}
	}
	return keep, drop
}
