package rl

import (
	"math"
	"math/rand/v2"
	"testing"

	"agentrl/internal/trajectory"
)

func near(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tol {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestGroupAdvantages(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		rewards []float64
		norm    bool
		want    []float64
	}{
		// Mean 0.25, unbiased std 0.5: 0.75/0.500001 and -0.25/0.500001.
		{"one of four", []float64{1, 0, 0, 0}, true, []float64{1.499997, -0.499999, -0.499999, -0.499999}},
		{"without std", []float64{1, 0, 0, 0}, false, []float64{0.75, -0.25, -0.25, -0.25}},
		{"pair", []float64{1, -0.2}, true, []float64{0.6 / (0.6*math.Sqrt2 + 1e-6), -0.6 / (0.6*math.Sqrt2 + 1e-6)}},
		{"equal", []float64{0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}, true, make([]float64, 8)},
		{"equal without std", []float64{-0.2, -0.2, -0.2}, false, make([]float64, 3)},
		{"alone", []float64{0.7}, true, []float64{0.7}},
		{"none", nil, true, nil},
	}
	for _, tt := range tests {
		got := GroupAdvantages(tt.rewards, tt.norm)
		if len(got) != len(tt.want) {
			t.Fatalf("%s: %d values, want %d", tt.name, len(got), len(tt.want))
		}
		for i := range got {
			near(t, tt.name, got[i], tt.want[i], 1e-9)
		}
	}
	for _, v := range GroupAdvantages([]float64{0.1, 0.1, 0.1}, true) {
		if v != 0 {
			t.Errorf("an all-equal group must get exactly 0, got %v", v)
		}
	}
}

func TestNormalizeTasksByHand(t *testing.T) {
	t.Parallel()
	// Tokens: 1 at +1, 3 at -1: mean -0.5, unbiased std sqrt((2.25+3*0.25)/3) = 1.
	seqs := []Sequence{{Task: "a", Tokens: 1, Advantage: 1}, {Task: "a", Tokens: 3, Advantage: -1}}
	rep := NormalizeTasks(seqs, Include)["a"]
	near(t, "first", seqs[0].Advantage, 1.5/1.000001, 1e-9)
	near(t, "second", seqs[1].Advantage, -0.5/1.000001, 1e-9)
	near(t, "mean before", rep.Before.Mean, -0.5, 1e-12)
	near(t, "std before", rep.Before.Std, 1, 1e-12)
	near(t, "mean after", rep.After.Mean, 0, 1e-12)
	if rep.Tokens != 4 || rep.Skipped {
		t.Errorf("report %+v", rep)
	}
}

func TestDegenerateGroups(t *testing.T) {
	t.Parallel()
	base := []Sequence{
		{Task: "a", Tokens: 1, Advantage: 1}, {Task: "a", Tokens: 3, Advantage: -1},
		{Task: "a", Tokens: 2, AllEqual: true}, {Task: "b", Tokens: 1, Advantage: 3},
	}
	inc := append([]Sequence(nil), base...)
	rep := NormalizeTasks(inc, Include)
	// Mean (1-3+0)/6 = -1/3; squares: (4/3)^2 + 3(2/3)^2 + 2(1/3)^2 = 30/9, over 5 = 2/3.
	shift := (1.0 / 3) / (math.Sqrt(2.0/3) + 1e-6)
	near(t, "shift", rep["a"].DegenerateShift, shift, 1e-9)
	near(t, "an all-equal member", inc[2].Advantage, shift, 1e-9)
	if rep["a"].DegenerateTokens != 2 {
		t.Errorf("degenerate tokens %d", rep["a"].DegenerateTokens)
	}
	if !rep["b"].Skipped || inc[3].Advantage != 3 {
		t.Errorf("a task with one token must stay unchanged: %+v %v", rep["b"], inc[3].Advantage)
	}
	zero := append([]Sequence(nil), base...)
	rep = NormalizeTasks(zero, Zero)
	if zero[2].Advantage != 0 || rep["a"].DegenerateShift != 0 {
		t.Errorf("zero moved an all-equal member to %v", zero[2].Advantage)
	}
	near(t, "zero first", zero[0].Advantage, 1.5/1.000001, 1e-9)
}

// The same tokens in any order and with any padding give every task mean 0 and deviation 1, and the same advantages.
func TestNormalizeTasksProperties(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := 4 + rng.IntN(30)
		seqs := make([]Sequence, n)
		for i := range seqs {
			seqs[i] = Sequence{Task: string(rune('a' + rng.IntN(3))), Tokens: rng.IntN(40), Advantage: rng.NormFloat64() * 3}
			if rng.IntN(4) == 0 {
				seqs[i].AllEqual, seqs[i].Advantage = true, 0
			}
		}
		mode := Include
		if rng.IntN(2) == 0 {
			mode = Zero
		}
		got := append([]Sequence(nil), seqs...)
		rep := NormalizeTasks(got, mode)
		perm := rng.Perm(n)
		other := make([]Sequence, n)
		for i, p := range perm {
			other[i] = seqs[p]
		}
		NormalizeTasks(other, mode)
		for i, p := range perm {
			near(t, "permuted advantage", other[i].Advantage, got[p].Advantage, 1e-9)
		}
		sum, sq, cnt := map[string]float64{}, map[string]float64{}, map[string]float64{}
		for _, s := range got {
			mask := make([]bool, 50)
			for j := range s.Tokens {
				mask[j+3] = true
			}
			for j, a := range Expand(mask, s.Advantage) {
				if !mask[j] {
					if a != 0 {
						t.Fatalf("a masked token has advantage %v", a)
					}
					continue
				}
				if mode == Zero && s.AllEqual {
					if a != 0 && !rep[s.Task].Skipped {
						t.Fatalf("an all-equal token has advantage %v", a)
					}
					continue
				}
				sum[s.Task] += float64(a)
				sq[s.Task] += float64(a) * float64(a)
				cnt[s.Task]++
			}
		}
		for task, c := range cnt {
			if rep[task].Skipped {
				continue
			}
			near(t, "token mean", sum[task]/c, 0, 1e-5)
			near(t, "token deviation", math.Sqrt(sq[task]/(c-1)), 1, 1e-3)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	tests := []struct {
		status trajectory.Status
		env    float64
		want   Judgement
	}{
		{trajectory.Completed, 1, Judgement{Env: 1, Reward: 1, Pass: true}},
		{trajectory.Completed, 0.4, Judgement{Env: 0.4, Reward: 0.4}},
		{trajectory.Completed, 1.5, Judgement{Env: 1, Reward: 1, Pass: true, Clamped: true}},
		{trajectory.Completed, math.NaN(), Judgement{Clamped: true}},
		{trajectory.TaskLimitReached, 0, Judgement{Reward: -0.2}},
		{trajectory.TaskLimitReached, 0.5, Judgement{Env: 0.5, Reward: -0.2}},
		{trajectory.AgentInvalidAction, 1, Judgement{Env: 1, Reward: 1, Pass: true, Conflict: true}},
		{trajectory.TurnCap, 0, Judgement{Reward: -0.2}},
		{trajectory.LengthCap, 0, Judgement{Reward: -0.2}},
		{trajectory.TaskError, 0, Judgement{Excluded: true}},
		{trajectory.WorkerLost, 1, Judgement{Env: 1, Excluded: true}},
		{trajectory.Status("something new"), 0, Judgement{Excluded: true}},
		{trajectory.Running, 0, Judgement{Excluded: true}},
	}
	for _, tt := range tests {
		if got := Judge(tt.status, tt.env, -0.2); got != tt.want {
			t.Errorf("Judge(%q, %v) = %+v, want %+v", tt.status, tt.env, got, tt.want)
		}
	}
}

func TestTokenLoss(t *testing.T) {
	t.Parallel()
	c := Clip{Low: 0.2, High: 0.28, Dual: 3}
	tests := []struct {
		name       string
		adv, ratio float64
		want       float64
		clipped    bool
	}{
		{"on policy", 2, 1, -2, false},
		{"gain beyond the bound", 1, 1.5, -1.28, true},
		{"gain below", 1, 0.5, -0.5, false},
		{"loss below the bound", -1, 0.5, 0.8, true},
		{"loss above", -1, 1.5, 1.5, false},
		{"dual clip", -1, 10, 3, true},
		{"no advantage", 0, 5, 0, false},
	}
	for _, tt := range tests {
		got, clipped := TokenLoss(tt.adv, math.Log(tt.ratio)-1, -1, c)
		near(t, tt.name, got, tt.want, 1e-12)
		if clipped != tt.clipped {
			t.Errorf("%s: clipped %v", tt.name, clipped)
		}
	}
	if got, _ := TokenLoss(-1, math.Log(10), 0, Clip{Low: 0.2, High: 0.2}); math.Abs(got-10) > 1e-9 {
		t.Errorf("without dual clip %v, want 10", got)
	}
}

func TestPenaltiesAndMeans(t *testing.T) {
	t.Parallel()
	near(t, "k3 equal", K3(-1, -1), 0, 0)
	near(t, "k3", K3(-1, -1+math.Ln2), 2-math.Ln2-1, 1e-12)
	near(t, "k3 clamped", K3(-20, 0), 10, 0)
	near(t, "entropy uniform", Entropy([]float64{3, 3, 3, 3}, 1), math.Log(4), 1e-12)
	near(t, "entropy at temperature", Entropy([]float64{2, 0}, 2), Entropy([]float64{1, 0}, 1), 1e-12)
	v := [][]float64{{1, 9, 2}, {6, 9, 9}, {9, 9, 9}}
	m := [][]bool{{true, false, true}, {true, false, false}, {false, false, false}}
	near(t, "token mean", TokenMean(v, m), 3, 1e-12)
	near(t, "sequence mean", SeqMean(v, m), (1.5+6)/2, 1e-12)
	near(t, "empty", TokenMean(nil, nil)+SeqMean(nil, nil), 0, 0)
	keep, drop := Effective([][]float64{{1, 1}, {1, 0}, {-0.2, -0.2}, {0, 1}})
	if len(keep) != 2 || keep[0] != 1 || keep[1] != 3 || len(drop) != 2 || drop[0] != 0 || drop[1] != 2 {
		t.Errorf("keep %v drop %v", keep, drop)
	}
}
