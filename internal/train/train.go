// Package train is the loop of a run: warm start, rollouts, advantages, updates, publication, evaluation, checkpoints.
package train

import (
	"context"
	"log/slog"
	"time"

	"agentrl/internal/engine"
	"agentrl/internal/env"
	"agentrl/internal/experiment"
	"agentrl/internal/live"
	"agentrl/internal/tokenizer"
)

// Store is what a run writes and reads; *store.DB has it.
type Store interface {
	CommitStep(ctx context.Context, l experiment.Lease, c experiment.StepCommit) error
	AddEvent(ctx context.Context, l experiment.Lease, e experiment.Event) error
	AddCheckpoint(ctx context.Context, l experiment.Lease, c experiment.CheckpointInfo) error
	DeleteCheckpoint(ctx context.Context, l experiment.Lease, dir string) error
	SetStart(ctx context.Context, l experiment.Lease, warmup, step int64, kernel string) error
	Checkpoints(ctx context.Context, runID int64) ([]experiment.CheckpointInfo, error)
}

// EngineSpec is what an engine must be built for.
type EngineSpec struct {
	Base        string               // preset or directory, policy.base
	Tokenizer   *tokenizer.Tokenizer // nil: Base is a directory that has its own
	MaxContext  int                  // tokens of the longest sequence, sampling.max_total_tokens
	Concurrency int                  // generations at once, rollouts and evaluation together
	Versions    int                  // published versions resident at once
	Seed        uint64               // of the initial weights
	Conf        experiment.EngineConf
}

// Episodes of a run beyond pipeline.concurrency that an evaluation may play beside the rollouts.
const evalConcurrency = 64

// Deps is what a run needs from outside. Every field is required except Live, Log, Now and Progress.
type Deps struct {
	// NewEngine builds the engine with fresh weights; a resumed run loads its checkpoint into it.
	NewEngine func(ctx context.Context, s EngineSpec) (engine.Engine, error)
	Gateway   env.Gateway
	Store     Store
	Live      live.Publisher
	DataDir   string // checkpoints go to DataDir/runs/ID/checkpoints
	Now       func() time.Time
	Log       *slog.Logger
	// Stop asks for a checkpoint and a clean end when it is closed. Cancelling the context ends the run at once without
	// a checkpoint.
	Stop     <-chan struct{}
	Progress func(Progress)
	// Hook, which may be nil, is told when a named point of the run is passed, on the goroutine that passes it. Tests of
	// recovery stop the process there.
	Hook func(point string)
}

// Progress is one line for a person or a script that watches a headless run.
type Progress struct {
	Phase        experiment.Phase `json:"phase"`
	Step         int64            `json:"step"`
	Steps        int64            `json:"steps"`
	RewardMean   float64          `json:"reward_mean"`
	PassRate     float64          `json:"pass_rate"`
	StalenessMax int64            `json:"staleness_max"`
	Loss         float64          `json:"loss"`
	Accuracy     float64          `json:"accuracy,omitempty"` // warm start
	EvalPass     float64          `json:"eval_pass,omitempty"`
	Tokens       int64            `json:"tokens"` // trained so far
	WallSeconds  float64          `json:"wall_s"`
}

// Summary is what a finished run amounts to.
type Summary struct {
	PassAt1Start float64 `json:"pass_at_1_start"` // at step 0 of the RL phase, before the first update; -1: not evaluated
	PassAt1End   float64 `json:"pass_at_1_end"`
	EvalSamples  int     `json:"eval_samples"` // episodes of one evaluation
	Level        int     `json:"level"`
	Constrained  bool    `json:"constrained"`
	Parameters   int64   `json:"parameters"`
	WallSeconds  float64 `json:"wall_s"` // over all attempts
	Trajectories int64   `json:"trajectories"`
	Tokens       int64   `json:"tokens"` // trained, warm start included
	Steps        int64   `json:"steps"`
}

// Result is how an attempt ended. Err is the cause when the outcome is Failed, or experiment.ErrFenced when the lease
// was lost: then nothing may be written any more, also not the outcome.
type Result struct {
	Outcome experiment.Outcome
	Summary Summary
	Err     error
}

// Run executes one attempt of a run under a lease, from its newest valid checkpoint or from the start.
//
// The outcome is Finished at the end of the budget, Stopped after Deps.Stop, Cancelled when ctx ends, and Failed, or
// Stopped with a reason when only the disk is full, on errors.
func Run(ctx context.Context, d Deps, run experiment.Run, lease experiment.Lease) Result {
	return execute(ctx, d, run, lease)
}
