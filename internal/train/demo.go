package train

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"agentrl/internal/chat"
	"agentrl/internal/engine"
	"agentrl/internal/env"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/policy"
	"agentrl/internal/rollout"
	"agentrl/internal/trajectory"
)

// demonstration is one playing by the expert. Injected marks assistant messages that are not the expert's: they are
// there to be recovered from, not to be learnt.
type demonstration struct {
	task     string
	open     []trajectory.Message
	turns    []demoTurn
	complete bool // the environment ended the episode
}

type demoTurn struct {
	message  trajectory.Message
	injected bool
	replies  []trajectory.Message
}

// messages returns the conversation in order.
func (d *demonstration) messages() []trajectory.Message {
	out := slices.Clone(d.open)
	for _, t := range d.turns {
		out = append(append(out, t.message), t.replies...)
	}
	return out
}

// teacher plays demonstrations. Demonstration i is always the same one.
type teacher struct {
	gateway env.Gateway
	specs   map[string]env.Spec
	conf    experiment.Warmup
	seed    uint64
	turns   int
}

// The purposes of draws from the run's seed that are not rollouts.
const (
	purposeDemo   = 0xde40
	purposeInject = 0x12a1
	purposeExpert = 0xe1
)

// draws yields the demonstrations' samples in order, from demonstration first on: the same ones in every pass.
func demoDraws(tasks []rollout.MixTask, seed uint64, each int, first int64) iter.Seq2[int64, rollout.Draw] {
	return func(yield func(int64, rollout.Draw) bool) {
		for i := first - first%int64(each); ; i += int64(each) {
			m, err := rollout.NewMixer(tasks, policy.Hash(seed, purposeDemo))
			if err != nil {
				return
			}
			for j := range int64(each) {
				d := m.Next()
				if i+j >= first && !yield(i+j, d) {
					return
				}
			}
		}
	}
}

// play makes one demonstration. Errors are failures of the environment, or of a task without an expert.
func (t *teacher) play(ctx context.Context, index int64, d rollout.Draw) (*demonstration, error) {
	ep, err := t.gateway.Start(ctx, env.Sample{Task: d.Task, Index: d.Sample})
	if err != nil {
		return nil, err
	}
	defer ep.Close()
	expert, ok := ep.(env.Demonstrator)
	if !ok {
		return nil, errs.Field("warmup.demonstrations", "task %q has no expert; set it to 0 to start without demonstrations", d.Task)
	}
	out := &demonstration{task: d.Task, open: ep.Open()}
	inj := newInjector(ep, t.specs[d.Task])
	for turn := range t.turns {
		var m trajectory.Message
		injected := false
		if policy.Uniform(policy.Hash(t.seed, purposeInject, uint64(index), uint64(turn))) < t.conf.InjectInvalid {
			m, injected = inj.invalid(policy.Hash(t.seed, purposeInject, uint64(index), uint64(turn), 1))
		}
		if !injected {
			if m, err = expert.Expert(t.conf.Expert, policy.Hash(t.seed, purposeExpert, uint64(index))); err != nil {
				return nil, fmt.Errorf("the %s expert of %s: %w", t.conf.Expert, d.Task, err)
			}
		}
		inj.remember(m)
		step, err := ep.Step(ctx, m)
		if err != nil {
			return nil, err
		}
		out.turns = append(out.turns, demoTurn{message: m, injected: injected, replies: step.Messages})
		if step.Status != trajectory.Running {
			out.complete = true
			break
		}
	}
	return out, nil
}

// datum encodes a demonstration for the supervised loss: weight 1 on the expert's tokens, 0 on injected ones, and the
// observation weight on the environment's words between turns. What does not fit into the longest sequence is cut off
// at a turn.
func (d *demonstration) datum(f chat.Format, observation float64, longest int) engine.Datum {
	b := chat.NewBuilder(f, d.open)
	weights := make([]float32, b.Len())
	grow := func(w float32) {
		for len(weights) < b.Len() {
			weights = append(weights, w)
		}
	}
	cut := 0
	for i, t := range d.turns {
		b.Prompt()
		grow(0)
		b.Assistant(t.message)
		if b.Len() > longest {
			break
		}
		if t.injected {
			grow(0)
		} else {
			grow(1)
		}
		cut = b.Len()
		if i+1 < len(d.turns) {
			b.Reply(t.replies)
			grow(float32(observation))
		}
	}
	return engine.Datum{Tokens: b.Tokens()[:cut], Weights: weights[:cut]}
}

// injector makes calls that are well formed but not admissible now: things that could be done earlier in the episode
// or were just done, which is what a policy that repeats itself tries.
type injector struct {
	known env.Admissible
	tool  string
	key   string
	past  []string
}

func newInjector(ep env.Episode, spec env.Spec) *injector {
	in := &injector{}
	in.known, _ = ep.(env.Admissible)
	if in.known == nil {
		return in
	}
	in.tool, _ = in.known.Admissible()
	for _, t := range spec.Tools {
		if t.Name == in.tool {
			in.key, _ = rollout.SingleParameter(t)
		}
	}
	return in
}

// remember notes what could be done before a message was sent.
func (in *injector) remember(trajectory.Message) {
	if in.known == nil || in.key == "" {
		return
	}
	_, now := in.known.Admissible()
	for _, a := range now {
		if !slices.Contains(in.past, a) {
			in.past = append(in.past, a)
		}
	}
}

// invalid returns such a call, or false when there is none.
func (in *injector) invalid(bits uint64) (trajectory.Message, bool) {
	if in.known == nil || in.key == "" {
		return trajectory.Message{}, false
	}
	_, now := in.known.Admissible()
	var options []string
	for _, a := range in.past {
		if !slices.Contains(now, a) {
			options = append(options, a)
		}
	}
	if len(options) == 0 {
		return trajectory.Message{}, false
	}
	return rollout.CallMessage(in.tool, in.key, options[bits%uint64(len(options))]), true
}
