package metric

import (
	"math"
	"sort"
)

// Item is one evaluated sample of a task: N attempts, of which C succeeded. Seed names the trained run it belongs to,
// when several seeds are evaluated together.
type Item struct {
	Task string
	Seed int64
	N, C int
}

// PassAtK is the chance that at least one of k attempts drawn without replacement succeeds:
// 1 - C(n-c,k)/C(n,k) (method.md 9). NaN when n < k or the numbers make no sense.
func PassAtK(n, c, k int) float64 {
	if k < 1 || n < k || c < 0 || c > n {
		return math.NaN()
	}
	if n-c < k {
		return 1
	}
	miss := 1.0
	for j := n - c + 1; j <= n; j++ {
		miss *= 1 - float64(k)/float64(j)
	}
	return 1 - miss
}

// PassAllK is the chance that all k attempts drawn without replacement succeed: C(c,k)/C(n,k), written pass^k
// (method.md 9). NaN when n < k or the numbers make no sense.
func PassAllK(n, c, k int) float64 {
	if k < 1 || n < k || c < 0 || c > n {
		return math.NaN()
	}
	all := 1.0
	for i := range k {
		all *= float64(c-i) / float64(n-i)
	}
	return math.Max(0, all)
}

// PassPoint is one point of a pass@k or pass^k curve. Items have at least k attempts and are in the mean, LeftOut have
// fewer. MinSamples is the smallest number of attempts of the items in the mean.
type PassPoint struct {
	K          int     `json:"k"`
	Mean       float64 `json:"mean"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Items      int     `json:"items"`
	LeftOut    int     `json:"items_left_out"`
	MinSamples int     `json:"min_samples"`
}

// PassCurve computes a curve over ks with 95 % bootstrap bands (method.md 9). all chooses pass^k. The mean is over the
// items of a task, then unweighted over tasks, then over seeds. The bootstrap resamples seeds first when there are
// several, then items inside each task. A k that no item reaches is left out.
func PassCurve(items []Item, ks []int, all bool, seed uint64) []PassPoint {
	var out []PassPoint
	for _, k := range ks {
		p := PassPoint{K: k, MinSamples: math.MaxInt}
		values := map[int64]map[string][]float64{}
		for _, it := range items {
			v := PassAtK(it.N, it.C, k)
			if all {
				v = PassAllK(it.N, it.C, k)
			}
			if math.IsNaN(v) {
				p.LeftOut++
				continue
			}
			p.Items++
			p.MinSamples = min(p.MinSamples, it.N)
			if values[it.Seed] == nil {
				values[it.Seed] = map[string][]float64{}
			}
			values[it.Seed][it.Task] = append(values[it.Seed][it.Task], v)
		}
		if p.Items == 0 {
			continue
		}
		p.Mean, p.Low, p.High = nestedBootstrap(values, seed)
		out = append(out, p)
	}
	return out
}

// nestedBootstrap returns the mean over seeds of the unweighted mean over tasks of the mean over items, and its band.
func nestedBootstrap(values map[int64]map[string][]float64, seed uint64) (mean, low, high float64) {
	strata := make([][][]float64, 0, len(values)) // [seed][task][item], in a fixed order
	for _, s := range sortedKeys(values) {
		var tasks [][]float64
		for _, t := range sortedKeys(values[s]) {
			tasks = append(tasks, values[s][t])
		}
		strata = append(strata, tasks)
	}
	for _, tasks := range strata {
		mean += meanOverTasks(tasks, func(n, i int) int { return i })
	}
	mean /= float64(len(strata))
	rng := newRand(seed)
	drawn := make([]float64, Resamples)
	for r := range drawn {
		for i := range strata {
			pick := i
			if len(strata) > 1 {
				pick = rng.IntN(len(strata))
			}
			drawn[r] += meanOverTasks(strata[pick], func(n, _ int) int { return rng.IntN(n) })
		}
		drawn[r] /= float64(len(strata))
	}
	low, high = percentiles(drawn)
	return mean, low, high
}

// meanOverTasks averages each task over the items that choose picks, then over tasks.
func meanOverTasks(tasks [][]float64, choose func(n, i int) int) float64 {
	total := 0.0
	for _, v := range tasks {
		sum := 0.0
		for i := range v {
			sum += v[choose(len(v), i)]
		}
		total += sum / float64(len(v))
	}
	return total / float64(len(tasks))
}

func sortedKeys[K int64 | string, V any](m map[K]V) []K {
	out := make([]K, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool { return out[i] < out[j] })
	return out
}
