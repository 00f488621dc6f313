package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"agentrl/internal/experiment"
	"agentrl/internal/metric"
	"agentrl/internal/policy"
)

func TestRunLearns(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"sync", "async"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, mode)
			var mu sync.Mutex
			phases := map[experiment.Phase]int{}
			r.onLine = func(p Progress) {
				mu.Lock()
				defer mu.Unlock()
				phases[p.Phase]++
			}
			res := r.run(t.Context(), 1)
			if res.Err != nil || res.Outcome.State != experiment.Finished {
				t.Fatalf("%+v", res)
			}
			s := res.Summary
			if s.Steps != 10 || s.EvalSamples != 16 || s.PassAt1Start < 0 || s.PassAt1End <= s.PassAt1Start || s.Parameters == 0 || s.Tokens == 0 {
				t.Errorf("summary %+v", s)
			}
			if phases[experiment.PhaseWarmup] == 0 || phases[experiment.PhaseRL] != 10 || phases[experiment.PhaseEval] == 0 {
				t.Errorf("progress lines %v", phases)
			}
			points := r.store.series(t)
			for _, k := range []string{"warmup/loss@1", "eval/pass@1@0", "eval/pass@1@4", "eval/pass@1@8", "eval/pass@1@10", "eval/pass@1/toy-valid@0",
				"reward/mean@1", "reward/mean/toy-train@10", "pass_rate@10", "staleness/max@5", "adv/mean/after/toy-train@3", "eval/pass@2@0", metric.Loss + "@10"} {
				if _, ok := points[k]; !ok {
					t.Errorf("the point %s is missing", k)
				}
			}
			r.checkTrajectories(mode)
		})
	}
}

// checkTrajectories holds what is stored against the promises of method.md 6.6.
func (r *rig) checkTrajectories(mode string) {
	t := r.t
	stale, groups := 0, map[int64]int64{}
	for _, tr := range r.store.trajectories("rl") {
		if len(tr.Logprobs) != len(tr.Tokens) {
			t.Fatalf("%s: %d log-probs for %d tokens", tr.ID, len(tr.Logprobs), len(tr.Tokens))
		}
		if !tr.Trained {
			continue
		}
		if s, ok := groups[tr.Group]; ok && s != tr.Step {
			t.Errorf("group %d was trained in steps %d and %d", tr.Group, s, tr.Step)
		}
		groups[tr.Group] = tr.Step
		mask := tr.Mask()
		for i, on := range mask {
			if !on && (tr.Logprobs[i] != 0 || tr.TrainLogprobs[i] != 0) {
				t.Fatalf("%s: a masked token has log-probs", tr.ID)
			}
			if on && tr.Logprobs[i] == 0 {
				t.Fatalf("%s: a trained token has no behaviour log-prob", tr.ID)
			}
		}
		for _, u := range tr.Turns {
			age := tr.Step - 1 - u.PolicyVersion
			limit := int64(r.cfg.Pipeline.MaxStaleness)
			if mode == "sync" {
				limit = 0
			}
			if u.PolicyID == policy.Stale {
				stale++
				limit += 3
			}
			if age < 0 || age > limit {
				t.Errorf("%s: a token of the %s policy has age %d", tr.ID, u.PolicyID, age)
			}
		}
	}
	if stale == 0 {
		t.Error("the stale copy wrote no turn")
	}
	for _, tr := range r.store.trajectories("eval") {
		if tr.Trained || strings.Trim(tr.Letters(), "C") != "" {
			t.Errorf("%s: an evaluation was trained on or written by %s", tr.ID, tr.Letters())
		}
	}
}

func TestSyncIsIdenticalAtAnyConcurrency(t *testing.T) {
	t.Parallel()
	var want map[string]float64
	for _, n := range []int{2, 5, 64} {
		r := newRig(t, "sync")
		r.cfg.Policy.Pool.Members[1].Weight = 0.75 // enough of both at any concurrency
		r.cfg.Pipeline.Concurrency = n
		if res := r.run(t.Context(), 1); res.Err != nil {
			t.Fatal(res.Err)
		}
		if got := r.store.series(t); want == nil {
			want = got
		} else {
			sameSeries(t, got, want)
		}
	}
}

func TestStopAndResumeEqualsUninterrupted(t *testing.T) {
	t.Parallel()
	whole := newRig(t, "sync")
	if res := whole.run(t.Context(), 1); res.Err != nil {
		t.Fatal(res.Err)
	}
	want := whole.store.series(t)
	for stopAt := 1; stopAt <= len(whole.store.commits); stopAt += 3 {
		r := newRig(t, "sync")
		var once sync.Once
		r.store.onWrite = func(n int, _ experiment.StepCommit) error {
			if n == stopAt {
				once.Do(func() { close(r.stop) })
			}
			return nil
		}
		res := r.run(t.Context(), 1)
		if res.Outcome.State != experiment.Stopped && res.Outcome.State != experiment.Finished {
			t.Fatalf("stopped at commit %d: %+v", stopAt, res)
		}
		r.stop, r.store.onWrite = make(chan struct{}), nil
		res = r.run(t.Context(), 2)
		if res.Outcome.State != experiment.Finished {
			t.Fatalf("resumed after commit %d: %+v", stopAt, res)
		}
		sameSeries(t, r.store.series(t), want)
	}
}

func TestCrashAndResumeEqualsUninterrupted(t *testing.T) {
	t.Parallel()
	whole := newRig(t, "sync")
	if res := whole.run(t.Context(), 1); res.Err != nil {
		t.Fatal(res.Err)
	}
	want := whole.store.series(t)
	for crashAt := 1; crashAt <= len(whole.store.commits); crashAt += 2 {
		r := newRig(t, "sync")
		ctx, cancel := context.WithCancel(t.Context())
		r.store.onWrite = func(n int, _ experiment.StepCommit) error {
			if n == crashAt+1 {
				cancel() // the write itself is lost
				return context.Canceled
			}
			return nil
		}
		res := r.run(ctx, 1)
		cancel()
		if crashAt < len(whole.store.commits) && res.Outcome.State != experiment.Cancelled {
			t.Fatalf("crashed at commit %d: %+v", crashAt, res)
		}
		r.store.onWrite = nil
		if res = r.run(t.Context(), 2); res.Outcome.State != experiment.Finished {
			t.Fatalf("resumed after commit %d: %+v", crashAt, res)
		}
		sameSeries(t, r.store.series(t), want)
	}
}

func TestDamagedCheckpointFallsBack(t *testing.T) {
	t.Parallel()
	r := newRig(t, "sync")
	r.store.onWrite = func(_ int, c experiment.StepCommit) error {
		if c.Progress.Step == 9 {
			return experiment.ErrFenced
		}
		return nil
	}
	res := r.run(t.Context(), 1)
	if !errors.Is(res.Err, experiment.ErrFenced) {
		t.Fatalf("%+v", res)
	}
	list, err := newCheckpoints(r.data, 5, nil).list()
	if err != nil || len(list) != 2 || list[0].step != 8 || list[1].step != 4 {
		t.Fatalf("checkpoints %+v, %v", list, err)
	}
	path := filepath.Join(newCheckpoints(r.data, 5, nil).root(), list[0].name, "toy.gob")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	r.store.onWrite = nil
	if res = r.run(t.Context(), 2); res.Outcome.State != experiment.Finished {
		t.Fatalf("%+v", res)
	}
	if r.store.starts[2] != [2]int64{r.store.starts[2][0], 4} || !r.store.hasEvent("checkpoint", "unusable") {
		t.Errorf("started from %v, events %v", r.store.starts[2], r.store.events)
	}
	whole := newRig(t, "sync")
	whole.run(t.Context(), 1)
	sameSeries(t, r.store.series(t), whole.store.series(t))
}

func TestDatabaseGone(t *testing.T) {
	t.Parallel()
	r := newRig(t, "async")
	r.cfg.Eval.Tasks = nil
	r.store.onWrite = func(_ int, c experiment.StepCommit) error {
		if c.Progress.Step >= 6 {
			return errors.New("connection refused")
		}
		return nil
	}
	res := r.run(t.Context(), 1)
	if res.Outcome.State != experiment.Stopped || !strings.Contains(res.Outcome.Reason, "database") || !strings.Contains(res.Outcome.Reason, "checkpoint at step 4") {
		t.Errorf("%+v", res.Outcome)
	}
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	r := newRig(t, "async")
	saves := 0
	r.saveErr = func() error {
		if saves++; saves > 4 {
			return syscall.ENOSPC
		}
		return nil
	}
	res := r.run(t.Context(), 1)
	if res.Outcome.State != experiment.Stopped || !strings.Contains(res.Outcome.Reason, "disk is full") {
		t.Errorf("%+v", res)
	}
	left, err := filepath.Glob(filepath.Join(newCheckpoints(r.data, 5, nil).root(), tempPrefix+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestFailuresOfTheEnvironmentAreNotTrained(t *testing.T) {
	t.Parallel()
	r := newRig(t, "async")
	r.cfg.Warmup.Demonstrations = 0
	var mu sync.Mutex
	n := 0
	r.train.Fail = func(_ int64, turn int) error {
		mu.Lock()
		defer mu.Unlock()
		// The first 1000 calls make the tokenizer.
		if n++; turn > 0 && n > 1500 && n%7 == 0 {
			return errors.New("the worker is gone")
		}
		return nil
	}
	if res := r.run(t.Context(), 1); res.Outcome.State != experiment.Finished {
		t.Fatalf("%+v", res)
	}
	failed := 0
	for _, tr := range r.store.trajectories("rl") {
		if tr.Error != "" {
			failed++
			if tr.Trained || tr.Dropped == "" || tr.Reward != 0 {
				t.Errorf("a failed episode was trained on: %+v", tr.Status)
			}
		}
	}
	if failed == 0 {
		t.Error("no failed episode was stored")
	}
}

func TestAsyncStopAndResume(t *testing.T) {
	t.Parallel()
	r := newRig(t, "async")
	var once sync.Once
	r.onLine = func(p Progress) {
		if p.Phase == experiment.PhaseRL && p.Step == 4 {
			once.Do(func() { close(r.stop) })
		}
	}
	if res := r.run(t.Context(), 1); res.Outcome.State != experiment.Stopped {
		t.Fatalf("%+v", res)
	}
	r.stop = make(chan struct{})
	if res := r.run(t.Context(), 2); res.Outcome.State != experiment.Finished || res.Summary.Steps != 10 {
		t.Fatalf("%+v", res)
	}
	points := r.store.series(t)
	for _, k := range []string{"eval/pass@1@0", "eval/pass@1@4", "eval/pass@1@8", "eval/pass@1@10"} {
		if _, ok := points[k]; !ok {
			t.Errorf("the point %s is missing", k)
		}
	}
}

func TestVariants(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*experiment.Config){
		"kl":               func(c *experiment.Config) { c.Algorithm.KL.Coef = 0.01 },
		"dynamic sampling": func(c *experiment.Config) { c.Algorithm.DynamicSampling = true },
		"minibatches":      func(c *experiment.Config) { c.Algorithm.Minibatches, c.Algorithm.Epochs = 2, 2 },
		"restart":          func(c *experiment.Config) { c.Pipeline.WeightSync = "restart_turn" },
		"drain":            func(c *experiment.Config) { c.Pipeline.WeightSync = "drain" },
		"mix":              func(c *experiment.Config) { c.Policy.Pool.Mode = "mix" },
		"no evaluation":    func(c *experiment.Config) { c.Eval.Tasks = nil },
		"zero":             func(c *experiment.Config) { c.Algorithm.TaskNorm.Degenerate = "zero" },
		"constrained":      func(c *experiment.Config) { c.Sampling.Constrained = true },
		"no normalization": func(c *experiment.Config) { c.Algorithm.TaskAdvantageNorm = false },
	} {
		for _, mode := range []string{"sync", "async"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, mode)
				r.cfg.Budget.Steps = 4
				r.cfg.Warmup.Demonstrations = 40
				change(&r.cfg)
				if res := r.run(t.Context(), 1); res.Outcome.State != experiment.Finished || res.Summary.Steps != 4 {
					t.Errorf("%+v", res)
				}
			})
		}
	}
}

func TestBadConfigurationIsNamed(t *testing.T) {
	t.Parallel()
	r := newRig(t, "sync")
	r.cfg.Tasks[0].Task = "nowhere"
	res := r.run(t.Context(), 1)
	if res.Outcome.State != experiment.Failed || !strings.Contains(res.Outcome.Reason, "toy-train") {
		t.Errorf("%+v", res.Outcome)
	}
}
