// Package experiment is the domain of runs: their configuration, states, attempts, leases and what they record.
package experiment

import "time"

// Experiment is a named set of runs.
type Experiment struct {
	ID          int64     `json:"id"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	OwnerID     int64     `json:"owner_id"`
	CreatedAt   time.Time `json:"created_at"`
	Runs        int64     `json:"runs"`
}

// State is where a run stands.
type State string

// The states. Stopping: a stop was asked for and the worker is saving. Stopped runs can be resumed; finished, failed
// (resumable when a checkpoint exists) and cancelled end a run.
const (
	Queued    State = "queued"
	Running   State = "running"
	Stopping  State = "stopping"
	Stopped   State = "stopped"
	Finished  State = "finished"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// Phase is what a running run is doing.
type Phase string

// The phases in order.
const (
	PhaseWarmup Phase = "warmup"
	PhaseRL     Phase = "rl"
	PhaseEval   Phase = "eval"
	PhaseDone   Phase = "done"
)

// Run is one training with a frozen configuration.
type Run struct {
	ID            int64     `json:"id"`
	ExperimentID  int64     `json:"experiment_id"`
	Experiment    string    `json:"experiment"`
	Name          string    `json:"name"`
	OwnerID       int64     `json:"owner_id"`
	State         State     `json:"state"`
	Reason        string    `json:"reason,omitempty"` // why it stopped or failed
	Config        Config    `json:"-"`
	ConfigYAML    string    `json:"config_yaml,omitempty"` // not selected in lists
	Queue         string    `json:"queue"`
	Seed          uint64    `json:"seed"`
	Attempt       int       `json:"attempt"` // latest attempt number, 0 before the first
	WorkerID      string    `json:"worker_id,omitempty"`
	StopRequested string    `json:"stop_requested,omitempty"` // "", "stop" or "cancel"
	ForkedFrom    int64     `json:"forked_from,omitempty"`
	Progress      Progress  `json:"progress"`
	CreatedAt     time.Time `json:"created_at"`
	StartedAt     time.Time `json:"started_at"`
	FinishedAt    time.Time `json:"finished_at"`
	UpdatedAt     time.Time `json:"updated_at"`
}

// Progress is the run's latest position and headline numbers. Negative PassRate, EvalPass and RewardMean below -1 mean
// not known yet.
type Progress struct {
	Phase        Phase   `json:"phase"`
	Step         int64   `json:"step"`
	Steps        int64   `json:"steps"`
	WarmupStep   int64   `json:"warmup_step"`
	WarmupSteps  int64   `json:"warmup_steps"`
	RewardMean   float64 `json:"reward_mean"`
	PassRate     float64 `json:"pass_rate"`
	EvalPass     float64 `json:"eval_pass"`
	Trajectories int64   `json:"trajectories"`
	Tokens       int64   `json:"tokens"`
	StepSeconds  float64 `json:"step_seconds"` // moving mean, for the ETA
	Parameters   int64   `json:"parameters"`
}

// Attempt is one continuous execution of a run. StartWarmup and StartStep are the last steps of the checkpoint it began
// from: a point of an attempt counts if it lies at or before the start of every later attempt.
type Attempt struct {
	RunID       int64     `json:"run_id"`
	Number      int       `json:"number"`
	WorkerID    string    `json:"worker_id"`
	Host        string    `json:"host"`
	Kernel      string    `json:"kernel"`
	Fence       int64     `json:"-"`
	LeaseUntil  time.Time `json:"lease_until"`
	StartWarmup int64     `json:"start_warmup"`
	StartStep   int64     `json:"start_step"`
	EndStep     int64     `json:"end_step"`
	Outcome     State     `json:"outcome"` // running until it ends
	Reason      string    `json:"reason,omitempty"`
	StartedAt   time.Time `json:"started_at"`
	EndedAt     time.Time `json:"ended_at"`
}

// Lease is the right to write for a run. Every write names it and is refused with ErrFenced once another attempt holds
// the run.
type Lease struct {
	RunID    int64
	Attempt  int
	Fence    int64
	WorkerID string
}

// Signal is what a renewal tells the holder: "", "stop" (save and stop) or "cancel".
type Signal string

// Outcome ends an attempt.
type Outcome struct {
	State  State // Stopped, Finished, Failed, Cancelled, or Queued to be taken again
	Reason string
}

// Event is one line of a run's log.
type Event struct {
	ID      int64     `json:"id"`
	RunID   int64     `json:"run_id"`
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
	Level   string    `json:"level"` // info | warn | error
	Kind    string    `json:"kind"`  // queued, started, checkpoint, resumed, eval, stop, ...
	Message string    `json:"message"`
}

// Worker is a process that takes runs.
type Worker struct {
	ID        string    `json:"id"`
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	Queues    []string  `json:"queues"`
	Slots     int       `json:"slots"`
	RunIDs    []int64   `json:"run_ids"`
	Version   string    `json:"version"`
	Kernel    string    `json:"kernel"`
	CPUs      int       `json:"cpus"`
	Memory    int64     `json:"memory"` // bytes
	StartedAt time.Time `json:"started_at"`
	SeenAt    time.Time `json:"seen_at"`
	Draining  bool      `json:"draining"`
}

// Job is one piece of queued work. The SQL row is the truth; the queue only delivers its id.
type Job struct {
	ID         int64     `json:"id"`
	Kind       string    `json:"kind"` // "train"
	RunID      int64     `json:"run_id"`
	Queue      string    `json:"queue"`
	State      JobState  `json:"state"`
	Tries      int       `json:"tries"`
	WorkerID   string    `json:"worker_id,omitempty"`
	Error      string    `json:"error,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at"`
}

// JobState is where a job stands.
type JobState string

// The states of a job.
const (
	JobPending   JobState = "pending"
	JobActive    JobState = "active"
	JobDone      JobState = "done"
	JobFailed    JobState = "failed"
	JobCancelled JobState = "cancelled"
)

// CheckpointInfo is a saved state. Dir is below the data directory.
type CheckpointInfo struct {
	RunID      int64     `json:"run_id"`
	Attempt    int       `json:"attempt"`
	Step       int64     `json:"step"`
	WarmupStep int64     `json:"warmup_step"`
	Dir        string    `json:"dir"`
	Bytes      int64     `json:"bytes"`
	CreatedAt  time.Time `json:"created_at"`
}

// Saved is a version of a reusable object: a task mix or a policy pool. Versions of one (Kind, Name) count from 1 and
// never change.
type Saved struct {
	ID        int64     `json:"id"`
	Kind      string    `json:"kind"` // mix | pool
	Name      string    `json:"name"`
	Version   int       `json:"version"`
	Body      string    `json:"body"` // YAML of []TaskMix or Pool
	Note      string    `json:"note"`
	AuthorID  int64     `json:"author_id"`
	CreatedAt time.Time `json:"created_at"`
}
