package policy

// Hash mixes a seed with the parts of a key into 64 evenly distributed bits. It is a counter-based generator: the value
// belongs to the key, not to how many values were drawn before, so any draw can be replayed on its own. Each step is
// the finaliser of splitmix64.
func Hash(seed uint64, key ...uint64) uint64 {
	h := mix64(seed)
	for _, k := range key {
		h = mix64(h ^ mix64(k+0x632be59bd9b4e019))
	}
	return h
}

// Uniform turns 64 bits into a number in [0, 1) with 53 random bits.
func Uniform(bits uint64) float64 { return float64(bits>>11) * (1.0 / (1 << 53)) }

func mix64(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
