package trajectory

import (
	"fmt"
	"time"
)

// Sampling is how tokens were drawn. The stored log-probs are meaningless without it.
type Sampling struct {
	Temperature  float64 `json:"temperature"`
	TopP         float64 `json:"top_p,omitempty"` // 0 or 1: off
	TopK         int     `json:"top_k,omitempty"` // 0: off
	MinP         float64 `json:"min_p,omitempty"` // 0: off
	MaxNewTokens int     `json:"max_new_tokens"`
	Seed         uint64  `json:"seed"`
}

// Finish says why a generation stopped.
type Finish string

// The finish reasons.
const (
	FinishStop   Finish = "stop"
	FinishLength Finish = "length"
	FinishAbort  Finish = "abort"
	FinishError  Finish = "error"
)

// Turn is one policy message and the environment's reply. [TokenStart, TokenEnd) are the positions in
// Trajectory.Tokens that the policy sampled; they alone carry loss mask 1, and only when Trainable.
type Turn struct {
	Index         int                `json:"index"`
	PolicyID      string             `json:"policy_id"` // "current", "stale" or an external name
	Letter        string             `json:"letter"`    // C, S, A, B, ...
	PolicyVersion int64              `json:"policy_version"`
	WeightsDigest string             `json:"weights_digest,omitempty"`
	EngineID      string             `json:"engine_id,omitempty"`
	Sampling      Sampling           `json:"sampling"`
	Constrained   bool               `json:"constrained,omitempty"`
	TokenStart    int                `json:"token_start"`
	TokenEnd      int                `json:"token_end"`
	Trainable     bool               `json:"trainable"`
	Finish        Finish             `json:"finish_reason"`
	StopToken     int32              `json:"stop_token,omitempty"`
	Message       Message            `json:"message"`
	RawText       string             `json:"raw_text,omitempty"`
	ParseError    string             `json:"parse_error,omitempty"`
	Replies       []Message          `json:"replies,omitempty"`
	Reward        float64            `json:"reward"`
	Metrics       map[string]float64 `json:"metrics,omitempty"`
	StartedAt     time.Time          `json:"started_at"`
	FirstTokenAt  time.Time          `json:"first_token_at"`
	EndedAt       time.Time          `json:"ended_at"`
	EnvLatency    time.Duration      `json:"env_latency"`
	PromptTokens  int                `json:"prompt_tokens"`
	CachedTokens  int                `json:"cached_tokens"`
}

// Trajectory is the stored record of an episode.
//
// Tokens is the whole sequence [n] as the engine saw it, append-only over turns. Logprobs [n] holds the behaviour
// log-prob of each sampled token and 0 elsewhere; TrainLogprobs [n], empty until trained, the trainer's log-prob
// before the update. The advantage of a trajectory is one number, shared by all its trainable tokens.
type Trajectory struct {
	ID        string  `json:"id"`
	RunID     int64   `json:"run_id"`
	Attempt   int     `json:"attempt"`
	Step      int64   `json:"step"`  // optimizer step that trained on it (or during which it was excluded)
	Phase     string  `json:"phase"` // "rl" or "eval"
	Group     int64   `json:"group"` // draw number: unique per run; the group of a draw keeps it over attempts
	Member    int     `json:"member"`
	Retry     int     `json:"retry"`
	Task      string  `json:"task"`
	Sample    int64   `json:"sample"`
	Status    Status  `json:"status"`
	Error     string  `json:"error,omitempty"`
	Trained   bool    `json:"trained"`
	Dropped   string  `json:"dropped,omitempty"` // why it was not trained on: "stale", "all-equal", "infrastructure", ...
	Conflict  bool    `json:"status_conflict,omitempty"`
	EnvReward float64 `json:"env_reward"` // in [0, 1], before rule 2
	Reward    float64 `json:"reward"`     // what training used
	Pass      bool    `json:"pass"`

	AdvantageGroup float64 `json:"advantage_group"` // GRPO
	Advantage      float64 `json:"advantage"`       // after task normalization

	DispatchVersion int64     `json:"dispatch_version"`
	Staleness       int64     `json:"staleness"` // largest age of a trainable token at training
	StartedAt       time.Time `json:"started_at"`
	EndedAt         time.Time `json:"ended_at"`

	// Totals that the store fills in, so that lists can show them without reading the conversation.
	NumTurns        int    `json:"num_turns,omitempty"`
	TurnLetters     string `json:"letters,omitempty"` // policy letters of the turns
	NumTokens       int    `json:"num_tokens,omitempty"`
	NumActionTokens int    `json:"num_action_tokens,omitempty"`

	Tools []Tool    `json:"tools,omitempty"`
	Open  []Message `json:"open"`
	Turns []Turn    `json:"turns"`

	Tokens        []int32   `json:"-"`
	Logprobs      []float32 `json:"-"`
	TrainLogprobs []float32 `json:"-"`
}

// MakeID builds the id of a trajectory: run, attempt, draw and member, and the retry when it is not the first.
func MakeID(run int64, attempt int, phase string, group int64, member, retry int) string {
	p := ""
	if phase == "eval" {
		p = "e"
	}
	id := fmt.Sprintf("%d-%d-%s%d-%d", run, attempt, p, group, member)
	if retry > 0 {
		id += fmt.Sprintf("-r%d", retry)
	}
	return id
}

// ActionTokens counts the trainable tokens.
func (t *Trajectory) ActionTokens() int {
	n := 0
	for i := range t.Turns {
		if t.Turns[i].Trainable {
			n += t.Turns[i].TokenEnd - t.Turns[i].TokenStart
		}
	}
	return n
}

// Mask returns the loss mask [n]: true at trainable sampled positions.
func (t *Trajectory) Mask() []bool {
	m := make([]bool, len(t.Tokens))
	for i := range t.Turns {
		u := &t.Turns[i]
		if !u.Trainable {
			continue
		}
		for j := u.TokenStart; j < u.TokenEnd && j < len(m); j++ {
			m[j] = true
		}
	}
	return m
}

// Letters returns the policy letters of the turns, e.g. "CSCC".
func (t *Trajectory) Letters() string {
	b := make([]byte, 0, len(t.Turns))
	for i := range t.Turns {
		b = append(b, t.Turns[i].Letter...)
	}
	return string(b)
}
