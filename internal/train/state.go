package train

import (
	"agentrl/internal/rollout"
)

// stateFormat is the version of state.json; a checkpoint of another version is refused.
const stateFormat = 1

// state is everything a resumed attempt needs besides the engine's own files; it is written as state.json. Its zero
// value plus newState is the beginning of a run.
type state struct {
	Format  int    `json:"format"`
	RunID   int64  `json:"run_id"`
	Attempt int    `json:"attempt"`
	Seed    uint64 `json:"seed"`
	Kernel  string `json:"kernel"`

	WarmupStep    int64 `json:"warmup_step"`
	WarmupSteps   int64 `json:"warmup_steps"`
	DemosPerBatch int   `json:"demonstrations_per_batch"`

	Step      int64            `json:"step"`      // updates done, which is also the current version
	Reference bool             `json:"reference"` // the engine's files hold the reference of the KL penalty
	EvalDone  int64            `json:"eval_done"`
	Pending   int64            `json:"eval_pending"` // version of an evaluation that was under way; -1: none
	Versions  map[string]int64 `json:"versions"`

	Position      rollout.Position `json:"position"`
	NextEvalGroup int64            `json:"next_eval_group"`

	Tokens       int64   `json:"tokens"`       // trained, warm start included
	Trajectories int64   `json:"trajectories"` // played to their end in the RL phase
	WallSeconds  float64 `json:"wall_seconds"`
	RLSeconds    float64 `json:"rl_seconds"`
	StepSeconds  float64 `json:"step_seconds"`
	PassStart    float64 `json:"pass_start"`
	PassEnd      float64 `json:"pass_end"`
	RewardMean   float64 `json:"reward_mean"`
	PassRate     float64 `json:"pass_rate"`
	EvalSamples  int     `json:"eval_samples"`
	Skipped      int     `json:"skipped_in_a_row"`

	Files map[string]string `json:"files"` // name to SHA-256
}

func newState(runID int64, seed uint64) state {
	return state{Format: stateFormat, RunID: runID, Seed: seed, EvalDone: -1, Pending: -1, PassStart: -1, PassEnd: -1,
		RewardMean: unknownReward, PassRate: -1, Versions: map[string]int64{}}
}

// unknownReward is a reward mean that no run can have.
const unknownReward = -100

// startStep is what SetStart is told: a point of step 0 belongs to an attempt only if the checkpoint after it has the
// evaluation before the first update, so an attempt that has yet to do it starts before step 0.
func (s *state) startStep() int64 {
	if s.Step == 0 && s.EvalDone < 0 {
		return -1
	}
	return s.Step
}
