package rollout

import (
	"context"
	"errors"
	"time"

	"agentrl/internal/chat"
	"agentrl/internal/env"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/policy"
	"agentrl/internal/rl"
	"agentrl/internal/tokenizer"
	"agentrl/internal/trajectory"
)

// Hooks is told what episodes do while they do it, from their goroutines. The trajectory must not be kept or changed.
type Hooks interface {
	Started(t *trajectory.Trajectory)
	Turn(t *trajectory.Trajectory, turn *trajectory.Turn)
	Ended(t *trajectory.Trajectory)
}

// Player plays single episodes. Its fields are set once; Play is safe for concurrent use.
type Player struct {
	Gateway   env.Gateway
	Tokenizer *tokenizer.Tokenizer
	Formats   map[string]chat.Format // per task, bound to its tools
	Pool      *policy.Pool
	Weights   *Weights
	Alias     map[string]string     // names of Weights that members stand for here; nil: their own
	Hooks     Hooks                 // may be nil
	Forget    func(cacheKey string) // frees the KV cache of an ended episode; may be nil
	Now       func() time.Time
	Backoff   []time.Duration // between tries of a failing engine within one turn

	RunID    int64
	Attempt  int
	Seed     uint64
	Phase    string // "rl" or "eval"
	Sampling experiment.Sampling
	Abnormal float64 // algorithm.abnormal_reward

	TurnTimeout    time.Duration
	EpisodeTimeout time.Duration
}

// Slot names one episode: a member of a draw's group, and which try it is.
type Slot struct {
	Draw   Draw
	Member int
	Retry  int
}

// Play runs one episode to its end and returns its record; it never fails. Failures that are not the agent's end with
// a status of the infrastructure class and Error set. A cancelled context ends with Cancelled.
func (p *Player) Play(ctx context.Context, s Slot) *trajectory.Trajectory {
	t := &trajectory.Trajectory{
		ID:    trajectory.MakeID(p.RunID, p.Attempt, p.Phase, s.Draw.ID, s.Member, s.Retry),
		RunID: p.RunID, Attempt: p.Attempt, Phase: p.Phase, Group: s.Draw.ID, Member: s.Member, Retry: s.Retry,
		Task: s.Draw.Task, Sample: s.Draw.Sample, Status: trajectory.Running, StartedAt: p.Now(),
		DispatchVersion: int64(p.Weights.Version(p.weights(policy.Current))),
	}
	limited, cancel := context.WithTimeout(ctx, p.EpisodeTimeout)
	defer cancel()
	e := &episode{p: p, t: t, slot: s}
	e.guarded(limited)
	if t.Status == trajectory.Cancelled && ctx.Err() == nil {
		t.Status, t.Error = trajectory.TurnTimeout, "the episode took longer than "+p.EpisodeTimeout.String()
	}
	if t.Status.Class() == trajectory.ClassInfrastructure && ctx.Err() != nil {
		t.Status = trajectory.Cancelled
	}
	j := rl.Judge(t.Status, t.EnvReward, p.Abnormal)
	t.EnvReward, t.Reward, t.Pass, t.Conflict = j.Env, j.Reward, j.Pass, j.Conflict
	if j.Clamped {
		t.Error = join(t.Error, "the environment reported a reward outside 0 to 1, which was clamped")
	}
	t.EndedAt = p.Now()
	t.NumTurns, t.TurnLetters, t.NumTokens, t.NumActionTokens = len(t.Turns), t.Letters(), len(t.Tokens), t.ActionTokens()
	if p.Forget != nil {
		p.Forget(t.ID)
	}
	if p.Hooks != nil {
		p.Hooks.Ended(t)
	}
	return t
}

// weights returns the name under which the weights of a member are published.
func (p *Player) weights(member string) string {
	if name, ok := p.Alias[member]; ok {
		return name
	}
	return member
}

// guarded turns a panic of an environment or a parser into a failure of this one episode.
func (e *episode) guarded(ctx context.Context) {
	defer func() {
		if r := recover(); r != nil {
			e.fail(ctx, trajectory.TaskError, errs.New(errs.Internal, "the episode broke off: %v", r))
		}
	}()
	e.run(ctx)
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// fail ends an episode with an infrastructure status.
func (e *episode) fail(ctx context.Context, status trajectory.Status, err error) {
	if ctx.Err() != nil {
		status = trajectory.Cancelled
	}
	e.t.Status = status
	var safe *errs.Error
	if errors.As(err, &safe) {
		e.t.Error = safe.Message
	} else if err != nil {
		e.t.Error = err.Error()
	}
}
