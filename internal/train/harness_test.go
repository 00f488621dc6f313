package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentrl/internal/chat"
	"agentrl/internal/engine"
	"agentrl/internal/env"
	"agentrl/internal/experiment"
	"agentrl/internal/metric"
	"agentrl/internal/train/toy"
	"agentrl/internal/trajectory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memory is a store that keeps everything and fails on request.
type memory struct {
	mu      sync.Mutex
	commits []experiment.StepCommit
	attempt []int
	starts  map[int][2]int64 // attempt to warm-start and RL start
	events  []experiment.Event
	saved   []string
	onWrite func(n int, c experiment.StepCommit) error // before the n-th commit, from 1
}

func newMemory() *memory { return &memory{starts: map[int][2]int64{}} }

func (m *memory) CommitStep(_ context.Context, l experiment.Lease, c experiment.StepCommit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.onWrite != nil {
		if err := m.onWrite(len(m.commits)+1, c); err != nil {
			return err
		}
	}
	m.commits = append(m.commits, c)
	m.attempt = append(m.attempt, l.Attempt)
	return nil
}

func (m *memory) AddEvent(_ context.Context, _ experiment.Lease, e experiment.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.events = append(m.events, e)
	return nil
}

func (m *memory) AddCheckpoint(_ context.Context, _ experiment.Lease, c experiment.CheckpointInfo) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved = append(m.saved, c.Dir)
	return nil
}

func (m *memory) DeleteCheckpoint(_ context.Context, _ experiment.Lease, dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.saved = slices.DeleteFunc(m.saved, func(s string) bool { return s == dir })
	return nil
}

func (m *memory) SetStart(_ context.Context, l experiment.Lease, warmup, step int64, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.starts[l.Attempt] = [2]int64{warmup, step}
	return nil
}

func (m *memory) Checkpoints(context.Context, int64) ([]experiment.CheckpointInfo, error) {
	return nil, nil
}

// series returns the winning points as "metric@step" to value; a point that counts twice is an error.
func (m *memory) series(t *testing.T) map[string]float64 {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]float64{}
	for i, c := range m.commits {
		for _, p := range c.Points {
			counts := true
			for a, s := range m.starts {
				start := s[1]
				if strings.HasPrefix(p.Metric, "warmup/") {
					start = s[0]
				}
				if a > m.attempt[i] && p.Step > start {
					counts = false
				}
			}
			if !counts || measured(p.Metric) {
				continue
			}
			key := fmt.Sprintf("%s@%d", p.Metric, p.Step)
			if _, ok := out[key]; ok {
				t.Errorf("the point %s counts twice", key)
			}
			out[key] = p.Value
		}
	}
	return out
}

// measured says whether a metric depends on the clock or the machine.
func measured(name string) bool {
	return strings.HasPrefix(name, "throughput/") || name == metric.WarmupTokensPS || name == metric.ResidentBytes || name == metric.InFlight
}

func (m *memory) trajectories(phase string) []*trajectory.Trajectory {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*trajectory.Trajectory
	for _, c := range m.commits {
		for _, t := range c.Trajectories {
			if t.Phase == phase {
				out = append(out, t)
			}
		}
	}
	return out
}

func (m *memory) hasEvent(kind, part string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.events, func(e experiment.Event) bool { return e.Kind == kind && strings.Contains(e.Message, part) })
}

// rig runs a small toy run.
type rig struct {
	t        *testing.T
	store    *memory
	cfg      experiment.Config
	data     string
	train    *toy.Env
	perToken time.Duration
	saveErr  func() error
	onLine   func(Progress)
	stop     chan struct{}
}

func newRig(t *testing.T, mode string) *rig {
	c := experiment.Defaults()
	c.Name = "toy"
	c.Seed = 3
	c.Tasks = []experiment.TaskMix{{Task: "toy-train", Weight: 1}}
	c.Engine.VocabSize = 300
	c.Algorithm.GroupSize = 4
	c.Algorithm.LearningRate = 0.2
	c.Algorithm.Clip.Dual = 3
	c.Policy.Pool.Members[1].RefreshEvery = 3
	c.Sampling = experiment.Sampling{Temperature: 1, TopP: 1, MaxNewTokens: 6, MaxTotalTokens: 96, MaxTurns: 3}
	c.Pipeline.Mode = mode
	c.Pipeline.BatchPrompts = 4
	c.Pipeline.Concurrency = 8
	c.Pipeline.FirstBatchFactor = 1
	c.Pipeline.Retries = 1
	c.Warmup.Demonstrations = 120
	c.Warmup.BatchTokens = 300
	c.Warmup.LearningRate = 1
	c.Warmup.ObservationWeight = 0
	c.Budget.Steps = 10
	c.Eval = experiment.Eval{Tasks: []string{"toy-valid"}, Every: 4, Samples: 8, Attempts: 2}
	c.Checkpoint = experiment.Checkpoint{Every: 4, Keep: 2}
	return &rig{t: t, store: newMemory(), cfg: c, data: t.TempDir(), train: &toy.Env{Task: "toy-train", Samples: 50, Turns: 4}, stop: make(chan struct{})}
}

func (r *rig) run(ctx context.Context, attempt int) Result {
	r.t.Helper()
	gw, err := env.NewLocal(r.train, &toy.Env{Task: "toy-valid", Samples: 20, Turns: 4})
	if err != nil {
		r.t.Fatal(err)
	}
	return Run(ctx, Deps{
		NewEngine: func(_ context.Context, s EngineSpec) (engine.Engine, error) {
			end, ok := s.Tokenizer.Special(chat.TokenEnd)
			if !ok {
				return nil, errors.New("no end token")
			}
			e := toy.New(s.Tokenizer.VocabSize(), end)
			e.PerToken, e.SaveError = r.perToken, r.saveErr
			return e, nil
		},
		Gateway: gw, Store: r.store, DataDir: r.data, Stop: r.stop, Progress: r.onLine,
	}, experiment.Run{ID: 5, Config: r.cfg}, experiment.Lease{RunID: 5, Attempt: attempt, Fence: int64(attempt)})
}

func sameSeries(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for _, k := range slices.Sorted(maps.Keys(want)) {
		g, ok := got[k]
		if !ok {
			t.Errorf("the point %s is missing", k)
		} else if math.Float64bits(g) != math.Float64bits(want[k]) {
			t.Errorf("%s = %v, want %v", k, g, want[k])
		}
	}
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("the point %s is one too many", k)
		}
	}
}
