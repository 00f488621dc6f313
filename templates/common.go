package templates

import (
	"math"
	"strconv"
	"strings"
)

func splitLetters(s string) []string {
	out := make([]string, 0, len(s))
	for _, r := range s {
		out = append(out, string(r))
	}
	return out
}

func joinFloats(v []float64) string {
	out := make([]string, len(v))
	for i, x := range v {
		out[i] = Fixed(x, 2)
	}
	return strings.Join(out, ", ")
}

// Bars stand on a line at y = 18.5; one unit of reward is 17 px, negative ones hang below by at most 3 px.
func barY(r float64) string {
	if r < 0 {
		return "19"
	}
	return strconv.FormatFloat(18-17*math.Min(clean(r), 1), 'f', 1, 64)
}

func barH(r float64) string {
	if r < 0 {
		return "3"
	}
	return strconv.FormatFloat(math.Max(17*math.Min(clean(r), 1), 1), 'f', 1, 64)
}

func clean(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
