// Package toy is the smallest environment and engine that the whole loop can run on: a question with one right answer,
// environment latency on request, and a bigram model that learns it in a few updates. The benchmark of the pipeline and
// the tests of the loop use it, where the cost of a real model would only hide what they are about.
package toy

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"agentrl/internal/env"
	"agentrl/internal/errs"
	"agentrl/internal/policy"
	"agentrl/internal/trajectory"
)

// Tool is the only tool; its argument is the answer.
const (
	Tool  = "answer"
	Right = "yes"
)

// Env asks the same question until it gets the right answer or its turns are used up. It implements env.Environment.
type Env struct {
	Task    string
	Samples int64
	Turns   int
	// Latency of a step, log-normal with this median and 99th percentile; zero median: none. Every (sample, turn) always
	// has the same latency for the same Seed.
	Median, P99 time.Duration
	Seed        uint64
	// Fail, if set, may return an error instead of starting or stepping: an infrastructure failure.
	Fail func(sample int64, turn int) error
}

// Spec describes the task.
func (e *Env) Spec() env.Spec {
	return env.Spec{Task: e.Task, Code: "TY", Samples: e.Samples, TurnLimit: e.Turns, Tools: []trajectory.Tool{{
		Name: Tool, Description: "Answers the question.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
	}}}
}

// Start begins an episode.
func (e *Env) Start(ctx context.Context, s env.Sample) (env.Episode, error) {
	if s.Index < 0 || s.Index >= e.Samples {
		return nil, errs.Field("index", "samples are 0 to %d", e.Samples-1)
	}
	if e.Fail != nil {
		if err := e.Fail(s.Index, 0); err != nil {
			return nil, err
		}
	}
	return &episode{e: e, sample: s.Index}, ctx.Err()
}

type episode struct {
	e      *Env
	sample int64
	turn   int
}

func (p *episode) Open() []trajectory.Message {
	return []trajectory.Message{{Role: trajectory.User, Content: "is it so?"}}
}

func (p *episode) Step(ctx context.Context, m trajectory.Message) (env.Step, error) {
	p.turn++
	if p.e.Fail != nil {
		if err := p.e.Fail(p.sample, p.turn); err != nil {
			return env.Step{}, err
		}
	}
	if d := p.e.latency(p.sample, p.turn); d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return env.Step{}, ctx.Err()
		}
	}
	var args struct {
		Text string `json:"text"`
	}
	if len(m.ToolCalls) > 0 && json.Unmarshal([]byte(m.ToolCalls[0].Arguments), &args) == nil && args.Text == Right {
		return env.Step{Status: trajectory.Completed, Reward: 1}, nil
	}
	s := env.Step{Status: trajectory.Running, Messages: []trajectory.Message{{Role: trajectory.ToolRole, Content: "no"}}}
	if p.turn >= p.e.Turns {
		s.Status = trajectory.TaskLimitReached
	}
	return s, nil
}

// latency draws from the log-normal distribution through the normal quantile of a fixed number.
func (e *Env) latency(sample int64, turn int) time.Duration {
	if e.Median <= 0 {
		return 0
	}
	const z99 = 2.3263478740408408
	sigma := math.Log(float64(e.P99)/float64(e.Median)) / z99
	u := policy.Uniform(policy.Hash(e.Seed, uint64(sample), uint64(turn)))
	z := math.Sqrt2 * math.Erfinv(2*math.Min(math.Max(u, 1e-9), 1-1e-9)-1)
	return time.Duration(float64(e.Median) * math.Exp(sigma*z))
}

// Admissible lists both answers.
func (p *episode) Admissible() (string, []string) { return Tool, []string{"no", Right} }

// Expert answers wrongly half of the time, so that there is something left to learn.
func (p *episode) Expert(name string, seed uint64) (trajectory.Message, error) {
	text := Right
	if policy.Uniform(policy.Hash(seed, uint64(p.turn))) < 0.5 {
		text = "no"
	}
	args, _ := json.Marshal(map[string]string{"text": text})
	return trajectory.Message{Role: trajectory.Assistant, ToolCalls: []trajectory.ToolCall{{ID: "call_1", Name: Tool, Arguments: string(args)}}}, nil
}

func (p *episode) Close() error { return nil }
