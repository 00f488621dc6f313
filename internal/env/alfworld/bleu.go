package alfworld

import (
	"math"
	"strings"
)

// bleuFloor is the score that the best match must exceed to be used.
const bleuFloor = 0.01

// bleu is the smoothed BLEU-4 of env-alfworld.md 4.8 on white-space tokens: how much candidate resembles reference.
func bleu(reference, candidate string) float64 {
	r, h := strings.Fields(reference), strings.Fields(candidate)
	if len(h) == 0 || len(r) == 0 {
		return 0
	}
	sum, smooth := 0.0, 1.0
	for n := 1; n <= 4; n++ {
		m, d := overlap(r, h, n), max(1, len(h)-n+1)
		if n == 1 && m == 0 {
			return 0
		}
		p := float64(m) / float64(d)
		if m == 0 && len(h) > 1 {
			p = math.Log(float64(len(h))) / (5 * math.Pow(2, smooth)) / float64(d)
			smooth++
		}
		if p > 0 {
			sum += math.Log(p) / 4
		}
	}
	if len(h) <= len(r) {
		sum += 1 - float64(len(r))/float64(len(h))
	}
	return math.Exp(sum)
}

// overlap counts the n-grams of h that r has too, each at most as often as there.
func overlap(r, h []string, n int) int {
	left := map[string]int{}
	for i := 0; i+n <= len(r); i++ {
		left[strings.Join(r[i:i+n], " ")]++
	}
	m := 0
	for i := 0; i+n <= len(h); i++ {
		g := strings.Join(h[i:i+n], " ")
		if left[g] > 0 {
			left[g]--
			m++
		}
	}
	return m
}

// normal is how a submission is read: without surrounding space, in lower case, up to the first line end.
func normal(submission string) string {
	s := strings.ToLower(strings.TrimSpace(submission))
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// matchBLEU maps a submission to the first best command, or to itself if none resembles it.
func matchBLEU(submission string, commands []string) string {
	s := normal(submission)
	if len(s) > 2000 {
		s = s[:2000] // no command is near this long
	}
	best, most := s, bleuFloor
	for _, c := range commands {
		if c == s {
			return c
		}
		if b := bleu(c, s); b > most {
			best, most = c, b
		}
	}
	return best
}
