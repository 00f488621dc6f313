package eval

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"agentrl/internal/rollout"
	"agentrl/internal/trajectory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > 1e-12 {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestPassAtK(t *testing.T) {
	t.Parallel()
	tests := []struct {
		n, c, k   int
		at, hat   float64
		countable bool
	}{
		{4, 1, 1, 0.25, 0.25, true},
		{4, 1, 2, 0.5, 0, true},
		{4, 2, 2, 1 - 1.0/6, 1.0 / 6, true},
		{4, 0, 4, 0, 0, true},
		{4, 4, 4, 1, 1, true},
		{5, 3, 2, 0.9, 0.3, true},
		{3, 3, 4, 0, 0, false},
		{3, 1, 0, 0, 0, false},
	}
	for _, tt := range tests {
		at, ok := PassAtK(tt.n, tt.c, tt.k)
		hat, ok2 := PassHatK(tt.n, tt.c, tt.k)
		if ok != tt.countable || ok2 != tt.countable {
			t.Errorf("n %d k %d: countable %v %v", tt.n, tt.k, ok, ok2)
		}
		near(t, "pass@k", at, tt.at)
		near(t, "pass^k", hat, tt.hat)
	}
}

func TestScores(t *testing.T) {
	t.Parallel()
	items := []Item{
		{Task: "a", Sample: 0, Passes: 2, Attempts: 2, RewardSum: 2},
		{Task: "a", Sample: 1, Passes: 0, Attempts: 2, RewardSum: 0.5},
		{Task: "b", Sample: 0, Passes: 1, Attempts: 1, RewardSum: 1, Incomplete: 1},
		{Task: "b", Sample: 1, Incomplete: 2},
	}
	by := ByTask(items)
	near(t, "a", by["a"].Pass, 0.5)
	near(t, "a reward", by["a"].Reward, 2.5/4)
	near(t, "b", by["b"].Pass, 1)
	if by["b"].Items != 1 || by["b"].Incomplete != 3 {
		t.Errorf("b %+v", by["b"])
	}
	all := Overall(items)
	near(t, "mean over tasks", all.Pass, 0.75)
	if !(all.Low <= all.Pass && all.Pass <= all.High && all.Low >= 0.5 && all.High <= 1) {
		t.Errorf("band %v to %v", all.Low, all.High)
	}
	if again := Overall(items); again.Low != all.Low || again.High != all.High {
		t.Error("the band is not repeatable")
	}
	near(t, "pass@2", all.PassK[2], 0.5)
	if s := Overall(nil); s.Items != 0 || s.Pass != 0 {
		t.Errorf("no items: %+v", s)
	}
}

func TestRunPlaysEveryEpisodeOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	seen := map[rollout.Slot]int{}
	play := func(_ context.Context, s rollout.Slot) *trajectory.Trajectory {
		mu.Lock()
		seen[s]++
		mu.Unlock()
		st := trajectory.Completed
		if s.Draw.ID == 101 && (s.Retry == 0 || s.Member == 1) {
			st = trajectory.WorkerLost
		}
		return &trajectory.Trajectory{Group: s.Draw.ID, Member: s.Member, Task: s.Draw.Task, Sample: s.Draw.Sample, Status: st, Pass: true, EnvReward: 1}
	}
	plan := Plan{Tasks: []Task{{"a", 1000}, {"b", 2}}, Samples: 3, Attempts: 2, Concurrency: 4, Retries: 2, FirstGroup: 100}
	done, failed, err := Run(t.Context(), play, plan)
	if err != nil || len(done) != 10 || plan.Episodes() != 10 || plan.Groups() != 5 {
		t.Fatalf("%d episodes, %v", len(done), err)
	}
	if len(failed) != 2 {
		t.Errorf("%d failed tries", len(failed))
	}
	for s, n := range seen {
		if n != 1 {
			t.Errorf("%+v was played %d times", s, n)
		}
	}
	for i, d := range done {
		if d.Group != 100+int64(i/2) || d.Member != i%2 {
			t.Errorf("episode %d is group %d member %d", i, d.Group, d.Member)
		}
	}
	if s := Overall(Collect(done)); s.Incomplete != 1 || s.Episodes != 9 {
		t.Errorf("%+v", s)
	}
	other, _, err := Run(t.Context(), play, Plan{Tasks: plan.Tasks, Samples: 3, Attempts: 1, Concurrency: 1, FirstGroup: 7})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range other {
		if d.Sample != done[2*i].Sample {
			t.Error("two evaluations play different samples")
		}
	}
}

func TestRunStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, _, err := Run(ctx, func(context.Context, rollout.Slot) *trajectory.Trajectory {
		cancel()
		return &trajectory.Trajectory{Status: trajectory.Cancelled}
	}, Plan{Tasks: []Task{{"a", 50}}, Samples: 50, Attempts: 1, Concurrency: 3, Retries: 3})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
