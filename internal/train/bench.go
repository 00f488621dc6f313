package train

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"agentrl/internal/chat"
	"agentrl/internal/engine"
	"agentrl/internal/env"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/metric"
	"agentrl/internal/train/toy"
	"agentrl/internal/trajectory"
)

// AsyncResult compares the asynchronous pipeline with the synchronous one.
type AsyncResult struct {
	SyncPerSecond  float64 `json:"sync_trajectories_per_s"`
	AsyncPerSecond float64 `json:"async_trajectories_per_s"`
	Ratio          float64 `json:"ratio"`
	Trajectories   int     `json:"trajectories"`   // trained on, in either mode
	StalenessMean  float64 `json:"staleness_mean"` // of trained tokens, in updates, asynchronous
	StalenessMax   float64 `json:"staleness_max"`
	DroppedTokens  float64 `json:"dropped_tokens"`
}

// The benchmark's conditions: simulated environment latency is log-normal with this median and 99th percentile.
const (
	benchMedian      = 50 * time.Millisecond
	benchP99         = 2 * time.Second
	benchSeed        = 1
	benchConcurrency = 64
	benchStaleness   = 4
	benchSteps       = 24
)

// BenchAsync trains the toy model twice on the same episodes, synchronously and asynchronously, with simulated
// environment latency, and compares trajectories per second. A learning rate of 0 keeps the work of both the same.
func BenchAsync(ctx context.Context) (AsyncResult, error) {
	sync, err := benchRun(ctx, "sync")
	if err != nil {
		return AsyncResult{}, err
	}
	async, err := benchRun(ctx, "async")
	if err != nil {
		return AsyncResult{}, err
	}
	r := AsyncResult{SyncPerSecond: sync.perSecond(), AsyncPerSecond: async.perSecond(), Trajectories: async.trajectories,
		StalenessMax: async.ageMax, DroppedTokens: async.dropped}
	if async.updates > 0 {
		r.StalenessMean = async.ageSum / float64(async.updates)
	}
	if r.SyncPerSecond > 0 {
		r.Ratio = r.AsyncPerSecond / r.SyncPerSecond
	}
	return r, nil
}

func benchConfig(mode string) experiment.Config {
	c := experiment.Defaults()
	c.Name, c.Seed = "bench-async", benchSeed
	c.Tasks = []experiment.TaskMix{{Task: "toy-train", Weight: 1}}
	c.Policy.Pool = experiment.Pool{Mode: "single", Members: []experiment.Member{{Policy: "current", Weight: 1}}}
	c.Engine.VocabSize = 300
	c.Algorithm.LearningRate = 0
	c.Sampling = experiment.Sampling{Temperature: 1, TopP: 1, MaxNewTokens: 6, MaxTotalTokens: 128, MaxTurns: 6}
	c.Pipeline.Mode, c.Pipeline.BatchPrompts, c.Pipeline.Concurrency = mode, 8, benchConcurrency
	c.Pipeline.FirstBatchFactor, c.Pipeline.MaxStaleness, c.Pipeline.BatchMax = 1, benchStaleness, 8
	c.Budget.Steps = benchSteps
	c.Eval.Tasks = nil
	c.Checkpoint.Every = 1 << 20
	return c
}

func benchRun(ctx context.Context, mode string) (*benchStore, error) {
	dir, err := os.MkdirTemp("", "agentrl-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	gw, err := env.NewLocal(&toy.Env{Task: "toy-train", Samples: 1 << 20, Turns: 4, Median: benchMedian, P99: benchP99, Seed: benchSeed})
	if err != nil {
		return nil, err
	}
	s := &benchStore{now: time.Now}
	res := Run(ctx, Deps{
		NewEngine: func(_ context.Context, spec EngineSpec) (engine.Engine, error) {
			end, ok := spec.Tokenizer.Special(chat.TokenEnd)
			if !ok {
				return nil, errs.New(errs.Internal, "the tokenizer has no end token")
			}
			e := toy.New(spec.Tokenizer.VocabSize(), end)
			e.PerToken = time.Millisecond
			return e, nil
		},
		Gateway: gw, Store: s, DataDir: dir, Log: slog.New(slog.DiscardHandler),
	}, experiment.Run{ID: 1, Config: benchConfig(mode)}, experiment.Lease{RunID: 1, Attempt: 1})
	if res.Outcome.State != experiment.Finished {
		if res.Err != nil {
			return nil, res.Err
		}
		return nil, errs.New(errs.Internal, "the benchmark's run ended as %s: %s", res.Outcome.State, res.Outcome.Reason)
	}
	return s, nil
}

// benchStore counts what a run would store.
type benchStore struct {
	now func() time.Time

	mu           sync.Mutex
	begin, end   time.Time
	trajectories int
	updates      int
	ageSum       float64
	ageMax       float64
	dropped      float64
}

func (s *benchStore) perSecond() float64 {
	if d := s.end.Sub(s.begin).Seconds(); d > 0 {
		return float64(s.trajectories) / d
	}
	return 0
}

// CommitStep counts the trained trajectories of a step.
func (s *benchStore) CommitStep(_ context.Context, _ experiment.Lease, c experiment.StepCommit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range c.Trajectories {
		if t.Trained && t.Status.Class() != trajectory.ClassInfrastructure {
			s.trajectories++
			s.end = s.now()
		}
	}
	for _, p := range c.Points {
		switch p.Metric {
		case metric.StalenessMean:
			s.ageSum += p.Value
			s.updates++
		case metric.StalenessMax:
			s.ageMax = max(s.ageMax, p.Value)
		case metric.DroppedStale:
			s.dropped += p.Value
		}
	}
	return nil
}

// AddEvent notes when rollouts begin.
func (s *benchStore) AddEvent(_ context.Context, _ experiment.Lease, e experiment.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.Kind == "rl" {
		s.begin = s.now()
	}
	return nil
}

// AddCheckpoint does nothing.
func (s *benchStore) AddCheckpoint(context.Context, experiment.Lease, experiment.CheckpointInfo) error {
	return nil
}

// DeleteCheckpoint does nothing.
func (s *benchStore) DeleteCheckpoint(context.Context, experiment.Lease, string) error { return nil }

// SetStart does nothing.
func (s *benchStore) SetStart(context.Context, experiment.Lease, int64, int64, string) error {
	return nil
}

// Checkpoints returns none.
func (s *benchStore) Checkpoints(context.Context, int64) ([]experiment.CheckpointInfo, error) {
	return nil, nil
}
