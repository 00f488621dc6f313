// Package live carries what happens now from the training loop to open pages: topics, sequence numbers, rings and
// fan-out, in one process or across several through Redis.
package live

import (
	"context"
	"encoding/json"
	"fmt"
)

// Kind says what a message asks of the receiver.
type Kind string

// The kinds of dashboard.md 6.
const (
	Delta  Kind = "delta"  // append Data, a JSON array of items
	State  Kind = "state"  // replace with Data
	Resync Kind = "resync" // query again over HTTP
	End    Kind = "end"    // nothing more will come
	Error  Kind = "error"
	Ready  Kind = "ready" // a subscription without a cursor begins after Seq; no data
)

// Message is one message of a topic. Seq is strictly increasing per topic.
type Message struct {
	Topic string          `json:"topic"`
	Seq   int64           `json:"seq"`
	Kind  Kind            `json:"kind"`
	Data  json.RawMessage `json:"data,omitempty"`
}

// Publisher is what the training loop is handed. Publish never blocks on a slow reader; its error is logged, never
// fatal to a run, because SQL is the truth. items are marshalled to JSON, one delta with an array.
type Publisher interface {
	Publish(ctx context.Context, topic string, kind Kind, items ...any) error
}

// The topics. Items on them: metrics MetricItem, events experiment.Event, rollouts RolloutItem, groups
// experiment.Group, trajectory TurnItem, queue and workers and runs Changed.
func MetricsTopic(run int64) string    { return fmt.Sprintf("run/%d/metrics", run) }
func EventsTopic(run int64) string     { return fmt.Sprintf("run/%d/events", run) }
func RolloutsTopic(run int64) string   { return fmt.Sprintf("run/%d/rollouts", run) }
func GroupsTopic(run int64) string     { return fmt.Sprintf("run/%d/groups", run) }
func StatusTopic(run int64) string     { return fmt.Sprintf("run/%d/status", run) } // experiment.Progress and state
func TrajectoryTopic(id string) string { return "trajectory/" + id }

// Topics that are not of one run.
const (
	QueueTopic   = "queue"
	WorkersTopic = "workers"
	RunsTopic    = "runs"
)

// MetricItem is one appended point.
type MetricItem struct {
	Metric  string   `json:"m"`
	Attempt int      `json:"a"`
	Step    int64    `json:"s"`
	Time    float64  `json:"t"` // Unix seconds
	Value   *float64 `json:"v"` // null: NaN
}

// StatusItem is the state of a run now.
type StatusItem struct {
	RunID    int64   `json:"run"`
	State    string  `json:"state"`
	Phase    string  `json:"phase"`
	Reason   string  `json:"reason,omitempty"`
	Attempt  int     `json:"attempt"`
	Step     int64   `json:"step"`
	Steps    int64   `json:"steps"`
	Warmup   int64   `json:"warmup"`
	Warmups  int64   `json:"warmups"`
	ETA      float64 `json:"eta"` // seconds, -1 unknown
	InFlight int     `json:"in_flight"`
	Waiting  int     `json:"waiting"` // groups waiting for members
	Buffered int     `json:"buffered"`
	Reward   float64 `json:"reward"`
	Pass     float64 `json:"pass"`
	Eval     float64 `json:"eval"` // -1 unknown
}

// RolloutItem is one live rollout after a change: started, a turn, or ended.
type RolloutItem struct {
	ID      string   `json:"id"`
	Group   int64    `json:"group"`
	Member  int      `json:"member"`
	Phase   string   `json:"phase"`
	Task    string   `json:"task"`
	Sample  int64    `json:"sample"`
	Letters string   `json:"letters"` // policies of the turns so far
	Turn    int      `json:"turn"`
	Status  string   `json:"status"` // trajectory.Status
	Reward  *float64 `json:"reward,omitempty"`
	Started float64  `json:"started"`        // Unix seconds
	Last    string   `json:"last,omitempty"` // short text of the last action
}

// TurnItem is one turn of a trajectory that is still being written; the first item of a trajectory carries Open.
type TurnItem struct {
	ID     string          `json:"id"`
	Open   json.RawMessage `json:"open,omitempty"`
	Turn   json.RawMessage `json:"turn,omitempty"` // trajectory.Turn
	Status string          `json:"status"`
}

// Changed tells a list that an object changed.
type Changed struct {
	ID    string `json:"id"`
	State string `json:"state,omitempty"`
}
