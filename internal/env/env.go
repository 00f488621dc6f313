// Package env is how rollouts reach environments: one interface for every task, and a gateway in front of them.
package env

import (
	"context"

	"agentrl/internal/trajectory"
)

// Spec describes a task.
type Spec struct {
	Task      string            `json:"task"` // e.g. "alfworld-train"
	Code      string            `json:"code"` // two letters, e.g. "AF"
	Tools     []trajectory.Tool `json:"tools"`
	Samples   int64             `json:"samples"` // number of samples; indices are [0, Samples)
	TurnLimit int               `json:"turn_limit"`
}

// Sample names one problem of a task by its index.
type Sample struct {
	Task  string
	Index int64
}

// Step is the environment's answer to one policy message. Reward is of this turn; the reward of an episode is the last
// one. Status is trajectory.Running while the episode goes on.
type Step struct {
	Messages []trajectory.Message
	Status   trajectory.Status
	Reward   float64
	Metrics  map[string]float64
}

// Environment plays episodes of one task. Safe for concurrent use.
type Environment interface {
	Spec() Spec
	Start(ctx context.Context, sample Sample) (Episode, error)
}

// Episode is one playing. Not safe for concurrent use. Close is idempotent and frees everything.
type Episode interface {
	Open() []trajectory.Message
	// Step answers bad agent input with a status, never with an error: an error is an infrastructure failure.
	Step(ctx context.Context, m trajectory.Message) (Step, error)
	Close() error
}

// Admissible is implemented by episodes that know every valid call of the present state. Arguments are the values of
// the named tool's single string parameter, in the order of the environment.
type Admissible interface {
	Admissible() (tool string, arguments []string)
}

// Demonstrator is implemented by episodes whose environment has an expert. Next returns the message that the named
// expert ("searching" or "privileged") would send now; it looks at what has happened so far, so it also recovers from
// actions of others.
type Demonstrator interface {
	Expert(name string, seed uint64) (trajectory.Message, error)
}

// Gateway is the only way from rollouts to environments, local or remote. Safe for concurrent use.
type Gateway interface {
	// Specs lists the tasks that can be played now, sorted by task.
	Specs(ctx context.Context) ([]Spec, error)
	Start(ctx context.Context, sample Sample) (Episode, error)
}
