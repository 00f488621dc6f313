// Package eval measures a policy: it plays a fixed set of samples and scores them with pass@k and bootstrap bands.
package eval

import (
	"math"
	"math/rand/v2"
	"slices"

	"agentrl/internal/trajectory"
)

// Item is one sample of an evaluation with its outcomes.
type Item struct {
	Task       string
	Sample     int64
	Passes     int
	Attempts   int // episodes that count
	Incomplete int // episodes that failed for reasons that are not the agent's, after all tries
	RewardSum  float64
}

// PassAtK is the unbiased estimate for one item with n samples and c successes: 1 - C(n-c,k)/C(n,k). ok is false when
// there are fewer than k samples.
func PassAtK(n, c, k int) (p float64, ok bool) {
	if k < 1 || n < k {
		return 0, false
	}
	if n-c < k {
		return 1, true
	}
	q := 1.0
	for j := n - c + 1; j <= n; j++ {
		q *= 1 - float64(k)/float64(j)
	}
	return 1 - q, true
}

// PassHatK is the chance that all of k samples succeed: C(c,k)/C(n,k). ok is false when there are fewer than k samples.
func PassHatK(n, c, k int) (p float64, ok bool) {
	if k < 1 || n < k {
		return 0, false
	}
	p = 1
	for i := range k {
		p *= math.Max(0, float64(c-i)) / float64(n-i)
	}
	return p, true
}

// Score is what an evaluation found for one task, or for the unweighted mean of several.
type Score struct {
	Pass       float64 // pass@1
	Low, High  float64 // 95 % percentile bootstrap over items
	Reward     float64 // mean environment reward
	Items      int     // items with at least one counted episode
	Episodes   int     // counted episodes
	Incomplete int
	PassK      map[int]float64 // pass@k for k = 1, 2, 4, ... up to the attempts
}

// The bootstrap is repeated this often, from a fixed seed.
const (
	resamples     = 1000
	bootstrapSeed = 20251005
)

// ByTask scores every task on its own.
func ByTask(items []Item) map[string]Score {
	lists := map[string][]Item{}
	for _, it := range items {
		lists[it.Task] = append(lists[it.Task], it)
	}
	out := make(map[string]Score, len(lists))
	for task, list := range lists {
		out[task] = score([][]Item{list})
	}
	return out
}

// Overall is the unweighted mean over tasks; its band resamples items inside each task.
func Overall(items []Item) Score {
	lists := map[string][]Item{}
	for _, it := range items {
		lists[it.Task] = append(lists[it.Task], it)
	}
	names := make([]string, 0, len(lists))
	for task := range lists {
		names = append(names, task)
	}
	slices.Sort(names)
	var ordered [][]Item
	for _, task := range names {
		ordered = append(ordered, lists[task])
	}
	return score(ordered)
}

func score(tasks [][]Item) Score {
	s := Score{PassK: map[int]float64{}}
	var rates [][]float64
	most := 0
	for _, list := range tasks {
		var r []float64
		for _, it := range list {
			s.Incomplete += it.Incomplete
			if it.Attempts == 0 {
				continue
			}
			s.Items++
			s.Episodes += it.Attempts
			s.Reward += it.RewardSum
			most = max(most, it.Attempts)
			r = append(r, float64(it.Passes)/float64(it.Attempts))
		}
		if len(r) > 0 {
			rates = append(rates, r)
		}
	}
	if len(rates) == 0 {
		return s
	}
	s.Reward /= float64(s.Episodes)
	s.Pass = meanOfMeans(rates)
	s.Low, s.High = bootstrap(rates)
	for k := 1; k <= most; k *= 2 {
		sum, n := 0.0, 0
		for _, list := range tasks {
			for _, it := range list {
				if p, ok := PassAtK(it.Attempts, it.Passes, k); ok {
					sum += p
					n++
				}
			}
		}
		if n > 0 {
			s.PassK[k] = sum / float64(n)
		}
	}
	return s
}

func meanOfMeans(rates [][]float64) float64 {
	var sum float64
	for _, r := range rates {
		var m float64
		for _, v := range r {
			m += v
		}
		sum += m / float64(len(r))
	}
	return sum / float64(len(rates))
}

func bootstrap(rates [][]float64) (low, high float64) {
	rng := rand.New(rand.NewPCG(bootstrapSeed, 0))
	means := make([]float64, resamples)
	for b := range means {
		for _, r := range rates {
			var m float64
			for range r {
				m += r[rng.IntN(len(r))]
			}
			means[b] += m / float64(len(r)) / float64(len(rates))
		}
	}
	slices.Sort(means)
	return quantile(means, 0.025), quantile(means, 0.975)
}

func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Collect makes items of finished episodes, ordered by task and sample. Infrastructure failures count as incomplete.
func Collect(list []*trajectory.Trajectory) []Item {
	type key struct {
		task   string
		sample int64
	}
	byKey := map[key]*Item{}
	for _, t := range list {
		k := key{t.Task, t.Sample}
		it := byKey[k]
		if it == nil {
			it = &Item{Task: t.Task, Sample: t.Sample}
			byKey[k] = it
		}
		if t.Status.Class() == trajectory.ClassInfrastructure {
			it.Incomplete++
			continue
		}
		it.Attempts++
		it.RewardSum += t.EnvReward
		if t.Pass {
			it.Passes++
		}
	}
	out := make([]Item, 0, len(byKey))
	for _, it := range byKey {
		out = append(out, *it)
	}
	slices.SortFunc(out, func(a, b Item) int {
		if a.Task != b.Task {
			if a.Task < b.Task {
				return -1
			}
			return 1
		}
		return int(a.Sample - b.Sample)
	})
	return out
}
