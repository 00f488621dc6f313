package train

import (
	"agentrl/internal/engine"
	"agentrl/internal/experiment"
	"agentrl/internal/policy"
	"agentrl/internal/rl"
	"agentrl/internal/rollout"
	"agentrl/internal/trajectory"
)

// Why trained-on groups' members are left out; they appear as Trajectory.Dropped.
const (
	droppedStale    = "stale"
	droppedSmall    = "group too small"
	droppedAllEqual = "all-equal"
)

// batch is what one update is made of.
type batch struct {
	groups  []*rollout.Group         // all that were taken, dropped ones too
	members []*trajectory.Trajectory // what is trained on, in group and member order
	equal   map[int64]bool           // draws whose rewards are all equal
	reports map[string]rl.TaskReport
}

// limits are the ages that tokens may have when they are trained on (method.md 6.3).
type limits struct {
	current, stale int64
}

func ageLimits(c experiment.Config) limits {
	l := limits{current: int64(c.Pipeline.MaxStaleness)}
	for _, m := range c.Policy.Pool.Members {
		if m.Policy == policy.Stale {
			l.stale = int64(m.RefreshEvery + c.Pipeline.MaxStaleness)
		}
	}
	return l
}

// age sets the staleness of a trajectory against the version that is updated and says whether all its trainable tokens
// are within bounds.
func (l limits) age(t *trajectory.Trajectory, version int64) bool {
	ok := true
	t.Staleness = 0
	for i := range t.Turns {
		u := &t.Turns[i]
		if !u.Trainable {
			continue
		}
		a := version - u.PolicyVersion
		t.Staleness = max(t.Staleness, a)
		limit := l.current
		if u.PolicyID == policy.Stale {
			limit = l.stale
		}
		ok = ok && a <= limit
	}
	return ok
}

// screen drops the members of a group that are too old and, when too few are left, the rest with them. It returns
// whether the group is still trained on, and the action tokens that were dropped for their age.
func (l limits) screen(g *rollout.Group, version int64, least int) (ok bool, droppedTokens int) {
	left := 0
	for _, t := range g.Members {
		if l.age(t, version) {
			left++
			continue
		}
		t.Dropped = droppedStale
		droppedTokens += t.ActionTokens()
	}
	if left >= least || left == len(g.Members) && left > 0 {
		return true, droppedTokens
	}
	for _, t := range g.Members {
		if t.Dropped == "" {
			t.Dropped = droppedSmall
		}
	}
	return false, droppedTokens
}

// usable returns the members that were not dropped.
func usable(g *rollout.Group) []*trajectory.Trajectory {
	var out []*trajectory.Trajectory
	for _, t := range g.Members {
		if t.Dropped == "" {
			out = append(out, t)
		}
	}
	return out
}

func rewardsOf(list []*trajectory.Trajectory) []float64 {
	out := make([]float64, len(list))
	for i, t := range list {
		out[i] = t.Reward
	}
	return out
}

// advantages fills in the advantages of all usable members: within their group, then over their task (method.md 2, 4).
func (b *batch) advantages(a experiment.Algorithm) {
	b.equal = map[int64]bool{}
	b.members = nil
	var seqs []rl.Sequence
	for _, g := range b.groups {
		list := usable(g)
		if len(list) == 0 {
			continue
		}
		rewards := rewardsOf(list)
		equal := rl.AllEqual(rewards)
		b.equal[g.Draw.ID] = equal
		for i, adv := range rl.GroupAdvantages(rewards, a.NormByStd) {
			t := list[i]
			t.AdvantageGroup, t.Advantage = adv, adv
			b.members = append(b.members, t)
			seqs = append(seqs, rl.Sequence{Task: t.Task, Tokens: t.ActionTokens(), AllEqual: equal, Advantage: adv})
		}
	}
	if !a.TaskAdvantageNorm {
		b.reports = map[string]rl.TaskReport{}
		for task, m := range rl.TaskMoments(seqs) {
			b.reports[task] = rl.TaskReport{Before: m, After: m, Skipped: true}
		}
		return
	}
	b.reports = rl.NormalizeTasks(seqs, rl.Degenerate(a.TaskNorm.Degenerate))
	for i, t := range b.members {
		t.Advantage = seqs[i].Advantage
	}
}

// data makes the training sequences: the sampled ids with their behaviour log-probs; the advantage stands on trainable
// tokens and is exactly 0 everywhere else. It returns the trajectory of each sequence beside it.
func (b *batch) data() (data []engine.Datum, of []*trajectory.Trajectory) {
	for _, t := range b.members {
		if t.ActionTokens() == 0 {
			continue
		}
		mask := t.Mask()
		weights := make([]float32, len(mask))
		last := 0
		for i, on := range mask {
			if on {
				weights[i] = 1
				last = i + 1
			}
		}
		// Nothing after the last trainable token has any effect.
		data = append(data, engine.Datum{Tokens: t.Tokens[:last], Weights: weights[:last], OldLogprobs: t.Logprobs[:last],
			Advantages: rl.Expand(mask, t.Advantage)[:last]})
		of = append(of, t)
	}
	return data, of
}

// record describes the groups for the groups table.
func (b *batch) record(run int64, attempt int, step int64) []experiment.Group {
	out := make([]experiment.Group, 0, len(b.groups))
	for _, g := range b.groups {
		r := experiment.Group{RunID: run, Attempt: attempt, Step: step, Draw: g.Draw.ID, Task: g.Draw.Task, Sample: g.Draw.Sample, Size: g.Planned}
		list := usable(g)
		if len(list) == 0 {
			list = g.Members
			if len(list) > 0 {
				r.Dropped = list[0].Dropped
			}
		}
		for _, t := range list {
			r.Rewards = append(r.Rewards, t.Reward)
			r.Members = append(r.Members, t.ID)
			r.Letters = append(r.Letters, t.Letters())
			r.Staleness = max(r.Staleness, t.Staleness)
			if t.Pass {
				r.Passes++
			}
		}
		r.Mean, r.Spread = rl.MeanStd(r.Rewards)
		r.AllEqual = rl.AllEqual(r.Rewards)
		out = append(out, r)
	}
	return out
}
