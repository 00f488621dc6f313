package rollout

import (
	"context"
	"time"

	"agentrl/internal/chat"
	"agentrl/internal/env"
	"agentrl/internal/errs"
	"agentrl/internal/policy"
	"agentrl/internal/trajectory"
)

// episode is the state of one Play.
type episode struct {
	p       *Player
	t       *trajectory.Trajectory
	slot    Slot
	env     env.Episode
	builder *chat.Builder
	grammar *grammar
}

func (e *episode) run(ctx context.Context) {
	p, t := e.p, e.t
	format, ok := p.Formats[t.Task]
	if !ok {
		e.fail(ctx, trajectory.ControllerError, errs.New(errs.NotFound, "there is no task %q", t.Task))
		return
	}
	var err error
	if e.env, err = p.Gateway.Start(ctx, env.Sample{Task: t.Task, Index: t.Sample}); err != nil {
		e.fail(ctx, trajectory.ControllerError, err)
		return
	}
	defer func() {
		if err := e.env.Close(); err != nil {
			t.Error = join(t.Error, "closing the episode: "+err.Error())
		}
	}()
	t.Open, t.Tools = e.env.Open(), format.Tools()
	if p.Hooks != nil {
		p.Hooks.Started(t)
	}
	e.builder = chat.NewBuilder(format, t.Open)
	if p.Sampling.Constrained {
		e.grammar = newGrammar(format, e.env)
	}
	for t.Status == trajectory.Running {
		if len(t.Turns) >= p.Sampling.MaxTurns {
			t.Status = trajectory.TurnCap
			break
		}
		if !e.turn(ctx) {
			break
		}
	}
	t.Tokens = e.builder.Tokens()
	for len(t.Logprobs) < len(t.Tokens) {
		t.Logprobs = append(t.Logprobs, 0)
	}
}

// turn lets the pool write one message and the environment answer it. false means that the episode has ended without
// the environment's word.
func (e *episode) turn(ctx context.Context) bool {
	p, t := e.p, e.t
	prompt := e.builder.Prompt()
	room := p.Sampling.MaxTotalTokens - len(prompt)
	if room < 1 {
		t.Status = trajectory.LengthCap
		return false
	}
	index := len(t.Turns)
	member := p.Pool.Members()[p.Pool.Draw(policy.DrawKey{Group: e.slot.Draw.ID, Member: e.slot.Member, Retry: e.slot.Retry, Turn: index})]
	u := trajectory.Turn{
		Index: index, PolicyID: member.Policy, Letter: member.Letter, StartedAt: p.Now(), PromptTokens: len(prompt),
		Sampling: trajectory.Sampling{
			Temperature: p.Sampling.Temperature, TopP: p.Sampling.TopP, TopK: p.Sampling.TopK, MinP: p.Sampling.MinP,
			MaxNewTokens: min(p.Sampling.MaxNewTokens, room),
			Seed: policy.Hash(p.Seed, hashText(p.Phase), uint64(e.slot.Draw.ID), uint64(e.slot.Member),
				uint64(e.slot.Retry), uint64(index)),
		},
	}
	req := policy.Prompt{IDs: prompt, CacheKey: t.ID}
	if e.grammar != nil {
		c, err := e.grammar.next()
		if err != nil {
			e.fail(ctx, trajectory.TaskError, err)
			return false
		}
		req.Constraint, u.Constrained = c, c != nil
	}
	out, ok := e.generate(ctx, member.Policy, req, u.Sampling)
	if !ok {
		return false
	}
	e.record(&u, out)

	asked := p.Now()
	step, err := e.env.Step(ctx, u.Message)
	u.EnvLatency = p.Now().Sub(asked)
	if err != nil {
		t.Turns = append(t.Turns, u)
		e.fail(ctx, trajectory.TaskError, err)
		return false
	}
	u.Replies, u.Reward, u.Metrics = step.Messages, step.Reward, step.Metrics
	t.Turns = append(t.Turns, u)
	t.EnvReward, t.Status = step.Reward, step.Status
	if t.Status == "" {
		t.Status = trajectory.Unknown
	}
	if t.Status == trajectory.Running {
		e.reply(step.Messages)
	}
	if p.Hooks != nil {
		p.Hooks.Turn(t, &t.Turns[index])
	}
	return true
}

// reply appends the environment's words unless they would make the sequence too long to go on.
func (e *episode) reply(messages []trajectory.Message) {
	ids := len(e.builder.Format().Reply(messages)) + len(e.builder.Format().Begin())
	if e.builder.Len()+ids >= e.p.Sampling.MaxTotalTokens {
		e.t.Status = trajectory.LengthCap
		return
	}
	e.builder.Reply(messages)
}

// generate asks a policy for one message. New weights may restart it, and a failing engine is asked again from the
// last complete turn; false means that the episode has failed.
func (e *episode) generate(ctx context.Context, name string, req policy.Prompt, s trajectory.Sampling) (policy.Completion, bool) {
	for try := 0; ; {
		turnCtx, cancel := context.WithTimeout(ctx, e.p.TurnTimeout)
		out, restarted, err := e.attempt(turnCtx, name, req, s)
		timedOut := turnCtx.Err() != nil && ctx.Err() == nil
		cancel()
		switch {
		case err == nil:
			return out, true
		case restarted && ctx.Err() == nil:
			continue
		case timedOut:
			e.fail(ctx, trajectory.TurnTimeout, errs.New(errs.Unavailable, "a turn took longer than %s", e.p.TurnTimeout))
			return out, false
		case ctx.Err() != nil || try >= len(e.p.Backoff):
			e.fail(ctx, trajectory.EngineError, err)
			return out, false
		}
		if !sleep(ctx, e.p.Backoff[try]) {
			e.fail(ctx, trajectory.Cancelled, ctx.Err())
			return out, false
		}
		try++
	}
}

func (e *episode) attempt(ctx context.Context, name string, req policy.Prompt, s trajectory.Sampling) (policy.Completion, bool, error) {
	turn, err := e.p.Weights.Acquire(ctx, e.p.weights(name))
	if err != nil {
		return policy.Completion{}, false, err
	}
	defer turn.Done()
	out, err := turn.Policy.Generate(turn.Ctx, req, s)
	if err != nil {
		return out, turn.Restarted(), err
	}
	switch {
	case len(out.IDs) == 0:
		return out, false, errs.New(errs.Unavailable, "the engine returned no token")
	case len(out.IDs) > s.MaxNewTokens:
		return out, false, errs.New(errs.Unavailable, "the engine returned %d tokens, %d were asked for", len(out.IDs), s.MaxNewTokens)
	case len(out.Logprobs) != 0 && len(out.Logprobs) != len(out.IDs):
		return out, false, errs.New(errs.Unavailable, "the engine returned %d tokens with %d log-probs", len(out.IDs), len(out.Logprobs))
	case out.Finish == trajectory.FinishAbort || out.Finish == trajectory.FinishError:
		return out, turn.Restarted(), errs.New(errs.Unavailable, "the engine stopped a generation: %s", out.Finish)
	}
	return out, false, nil
}

// record takes what a policy wrote into the turn and the sequence. Without log-probs a turn is context only.
func (e *episode) record(u *trajectory.Turn, out policy.Completion) {
	t := e.t
	u.PolicyVersion, u.WeightsDigest, u.EngineID = out.Version, out.Digest, out.EngineID
	u.Finish, u.FirstTokenAt, u.CachedTokens = out.Finish, out.FirstTokenAt, out.CachedTokens
	u.TokenStart, u.TokenEnd = e.builder.Sampled(out.IDs)
	u.Trainable = len(out.Logprobs) == len(out.IDs)
	if out.Finish == trajectory.FinishStop {
		u.StopToken = out.IDs[len(out.IDs)-1]
	}
	for len(t.Logprobs) < u.TokenStart {
		t.Logprobs = append(t.Logprobs, 0)
	}
	t.Logprobs = append(t.Logprobs, out.Logprobs...)
	msg, err := e.builder.Format().Parse(out.IDs)
	if err != nil {
		u.ParseError = err.Error()
	}
	msg.Role = trajectory.Assistant
	u.Message, u.RawText = msg, e.p.Tokenizer.Decode(out.IDs)
	u.EndedAt = e.p.Now()
}

// sleep waits, and returns false when the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
