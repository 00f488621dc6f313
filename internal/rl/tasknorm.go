package rl

import "math"

// Degenerate says what task normalization does with groups whose rewards are all equal (method.md 4).
type Degenerate string

// The two ways. Include is the published equation: such groups count in the statistics and are shifted with the rest.
// Zero leaves them out of the statistics and at 0.
const (
	Include Degenerate = "include"
	Zero    Degenerate = "zero"
)

// Sequence is one trajectory as the normalization sees it. All its trainable tokens share one advantage.
type Sequence struct {
	Task      string
	Tokens    int  // trainable tokens
	AllEqual  bool // its group's rewards are all equal
	Advantage float64
}

// Moments describes the advantages of the tokens of one task.
type Moments struct {
	Mean, Std, Min, Max float64 // Std is unbiased
}

// TaskReport says what the normalization did to one task.
type TaskReport struct {
	Tokens           int
	DegenerateTokens int     // of all-equal groups
	DegenerateShift  float64 // what such tokens are moved to, -mean/std; 0 when they stay
	Skipped          bool    // fewer than 2 tokens, or all advantages equal: left unchanged
	Before, After    Moments
}

// NormalizeTasks brings the advantages of every task to token mean 0 and deviation 1 (method.md 4) in place and
// reports per task. Every trainable token counts once, so long trajectories weigh more. Sequences without trainable
// tokens get 0.
//
// A task whose tokens all have the same advantage has nothing to compare and is left unchanged.
func NormalizeTasks(seqs []Sequence, mode Degenerate) map[string]TaskReport {
	byTask := map[string][]int{}
	for i := range seqs {
		if seqs[i].Tokens <= 0 {
			seqs[i].Advantage = 0
			continue
		}
		byTask[seqs[i].Task] = append(byTask[seqs[i].Task], i)
	}
	reports := make(map[string]TaskReport, len(byTask))
	for task, members := range byTask {
		reports[task] = normalizeTask(seqs, members, mode)
	}
	return reports
}

func normalizeTask(seqs []Sequence, members []int, mode Degenerate) TaskReport {
	var r TaskReport
	var counted []int
	for _, i := range members {
		r.Tokens += seqs[i].Tokens
		if seqs[i].AllEqual {
			r.DegenerateTokens += seqs[i].Tokens
			if mode == Zero {
				continue
			}
		}
		counted = append(counted, i)
	}
	r.Before = moments(seqs, members)
	used := moments(seqs, counted)
	if tokens(seqs, counted) < 2 || used.Min == used.Max {
		r.Skipped = true
		r.After = r.Before
		return r
	}
	for _, i := range counted {
		seqs[i].Advantage = (seqs[i].Advantage - used.Mean) / (used.Std + Epsilon)
	}
	if mode != Zero {
		r.DegenerateShift = -used.Mean / (used.Std + Epsilon)
	}
	r.After = moments(seqs, members)
	return r
}

func tokens(seqs []Sequence, members []int) int {
	n := 0
	for _, i := range members {
		n += seqs[i].Tokens
	}
	return n
}

// TaskMoments describes the token advantages of every task without changing them.
func TaskMoments(seqs []Sequence) map[string]Moments {
	byTask := map[string][]int{}
	for i := range seqs {
		if seqs[i].Tokens > 0 {
			byTask[seqs[i].Task] = append(byTask[seqs[i].Task], i)
		}
	}
	out := make(map[string]Moments, len(byTask))
	for task, members := range byTask {
		out[task] = moments(seqs, members)
	}
	return out
}

// moments are over tokens, in two passes.
func moments(seqs []Sequence, members []int) Moments {
	m := Moments{Min: math.Inf(1), Max: math.Inf(-1)}
	n := float64(tokens(seqs, members))
	if n == 0 {
		return Moments{}
	}
	for _, i := range members {
		a := seqs[i].Advantage
		m.Mean += a * float64(seqs[i].Tokens)
		m.Min, m.Max = math.Min(m.Min, a), math.Max(m.Max, a)
	}
	m.Mean /= n
	var sum float64
	for _, i := range members {
		d := seqs[i].Advantage - m.Mean
		sum += d * d * float64(seqs[i].Tokens)
	}
	if n > 1 {
		m.Std = math.Sqrt(sum / (n - 1))
	}
	return m
}

// Expand spreads a trajectory's advantage over its tokens: the advantage where mask is set, exactly 0 elsewhere. This
// is where the mask is applied again after the normalization.
func Expand(mask []bool, advantage float64) []float32 {
	out := make([]float32, len(mask))
	for i, on := range mask {
		if on {
			out[i] = float32(advantage)
		}
	}
	return out
}
