package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentrl/internal/metric"
	"agentrl/internal/store"
)

// tinySync is a run of seconds in synchronous mode, where the result does not depend on what happened on the way.
const tinySync = `
name: tiny
seed: 11
tasks: [{task: alfworld-train, weight: 1}]
policy:
  base: pico
  pool: {mode: cross, members: [{policy: current, weight: 0.75}, {policy: stale, weight: 0.25, refresh_every: 2}]}
algorithm: {group_size: 2, learning_rate: 1e-3}
sampling: {max_new_tokens: 12, max_total_tokens: 256, max_turns: 3}
pipeline: {mode: sync, batch_prompts: 4, concurrency: 8}
warmup: {demonstrations: 96, batch_tokens: 1024}
budget: {steps: 6}
eval: {tasks: [alfworld-valid], every: 3, samples: 4, attempts: 1}
checkpoint: {every: 2, keep: 2}
`

// volatile are the series that measure the machine and not the run.
func volatile(name string) bool {
	return strings.HasPrefix(name, "throughput/") || strings.HasPrefix(name, "memory/") || strings.HasPrefix(name, "time/") ||
		strings.HasPrefix(name, "pipeline/") || strings.HasSuffix(name, "_per_s")
}

// TestKilledRunsResume kills a real process with SIGKILL in every stage, starts it again, and compares the finished run
// with one that was never interrupted, point for point.
func TestKilledRunsResume(t *testing.T) {
	t.Parallel()
	want := points(t, trainToEnd(t, t.TempDir(), ""))
	if len(want) < 20 {
		t.Fatalf("the uninterrupted run recorded only %d points", len(want))
	}
	for _, at := range []string{
		"warmup-step:3", "rollout-turn:20", "optimizer-step:3", "optimizer-done:4", "commit:5", "commit-done:3",
		"checkpoint-write:3", "checkpoint-rename:3", "checkpoint-done:3",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			got := points(t, trainToEnd(t, t.TempDir(), at))
			for k, v := range want {
				g, ok := got[k]
				if !ok {
					t.Errorf("lost %s", k)
				} else if g != v && !(math.IsNaN(g) && math.IsNaN(v)) {
					t.Errorf("%s is %v, uninterrupted %v", k, g, v)
				}
			}
			for k := range got {
				if _, ok := want[k]; !ok {
					t.Errorf("%s is too much", k)
				}
			}
		})
	}
}

// trainToEnd trains in a process of its own, which is killed once at the named point if there is one, and returns the
// data directory of the finished run.
func trainToEnd(t *testing.T, dir, killAt string) string {
	t.Helper()
	file := filepath.Join(dir, "run.yaml")
	if err := os.WriteFile(file, []byte(tinySync), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"train", file, "--data", dir, "--json"}
	if killAt != "" {
		out, err := child(t, killAt, args...)
		exit, ok := err.(*exec.ExitError)
		if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the process was not killed at %s: %v\n%s", killAt, err, out)
		}
		args = []string{"train", "--resume", "1", "--data", dir, "--json"}
	}
	out, err := child(t, "", args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var last struct {
		Phase string `json:"phase"`
		State string `json:"state"`
		Steps int64  `json:"steps"`
	}
	sc := bufio.NewScanner(bytes.NewReader(out))
	for sc.Scan() {
		if err := json.Unmarshal(sc.Bytes(), &last); err != nil {
			t.Fatalf("%q: %v", sc.Text(), err)
		}
	}
	if last.Phase != "done" || last.State != "finished" || last.Steps != 6 {
		t.Fatalf("last line: %+v", last)
	}
	return dir
}

func child(t *testing.T, killAt string, args ...string) ([]byte, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), "BE_AGENTRL=1", "BE_AGENTRL_KILL_AT="+killAt)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Logf("standard error:\n%s", errOut.String())
	}
	return out, err
}

// points reads every point of the winning lineage of run 1, keyed by metric and step.
func points(t *testing.T, dir string) map[string]float64 {
	t.Helper()
	st, err := store.Open(t.Context(), store.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	sums, err := st.Summaries(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, s := range sums {
		if volatile(s.Metric) {
			continue
		}
		series, err := st.Series(t.Context(), metric.Query{Runs: []int64{1}, Metric: s.Metric, X: metric.ByStep, From: math.NaN(), To: math.NaN(), Px: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		for _, one := range series {
			if one.Faint {
				continue
			}
			for _, b := range one.Buckets {
				if b.Count+b.NaN != 1 {
					t.Errorf("%s holds %d points at %v: doubled", s.Metric, b.Count+b.NaN, b.X0)
				}
				all[fmt.Sprintf("%s@%v", s.Metric, b.X0)] = b.First
			}
		}
	}
	return all
}
