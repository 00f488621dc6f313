package web

import (
	"math"

	"agentrl/internal/env"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/policy"
)

// dryInput says of which mix and pool a batch would be made.
type dryInput struct {
	Mix       []experiment.TaskMix
	Pool      experiment.Pool
	Prompts   int // groups of a batch
	GroupSize int
	Turns     int // turns per trajectory to draw for
	Seed      uint64
}

// dryRun is what a batch would be made of: exact expectations, and one drawn example.
type dryRun struct {
	Groups       int        `json:"groups"`
	Trajectories int        `json:"trajectories"`
	Turns        int        `json:"turns_per_trajectory"`
	Mode         string     `json:"mode"`
	Tasks        []dryTask  `json:"tasks"`
	Policies     []dryShare `json:"policies"`
	Example      []dryGroup `json:"example"` // the first groups of the drawn batch
}

// dryTask is the share of one task. Samples is 0 when the task's size is not known here.
type dryTask struct {
	Task         string  `json:"task"`
	Code         string  `json:"code,omitempty"`
	Weight       float64 `json:"weight"`
	Share        float64 `json:"share"`
	Groups       float64 `json:"groups"`       // expected per batch
	Trajectories float64 `json:"trajectories"` // expected per batch
	Samples      int64   `json:"samples,omitempty"`
	Batches      float64 `json:"batches_per_pass,omitempty"` // batches until every sample has come once, on average
}

// dryShare is one policy's part. Turns is expected per batch of trajectories with Turns turns; Drawn counts the example.
type dryShare struct {
	Policy string  `json:"policy"`
	Letter string  `json:"letter"`
	Share  float64 `json:"share"`
	Turns  float64 `json:"turns"`
	Drawn  int     `json:"drawn"`
	// Pure is the chance that a trajectory is written by this policy alone.
	Pure float64 `json:"pure"`
}

// dryGroup is the policies of one group's members, a letter per turn.
type dryGroup struct {
	Group   int64    `json:"group"`
	Members []string `json:"members"`
}

const dryExamples = 8

// dry computes a dry run. The policy draws are the pool's own, so an example with a run's seed shows that run's draws.
func dry(in dryInput, specs []env.Spec) (dryRun, error) {
	out := dryRun{Groups: in.Prompts, Trajectories: in.Prompts * in.GroupSize, Turns: in.Turns, Mode: in.Pool.Mode}
	known := map[string]env.Spec{}
	for _, sp := range specs {
		known[sp.Task] = sp
	}
	var sum float64
	for _, t := range in.Mix {
		sum += t.Weight
	}
	if len(in.Mix) > 0 && (sum <= 0 || math.IsInf(sum, 0) || math.IsNaN(sum)) {
		return out, errs.Field("mix", "the weights must add up to a positive number")
	}
	for _, t := range in.Mix {
		share := t.Weight / sum
		d := dryTask{
			Task: t.Task, Code: known[t.Task].Code, Weight: t.Weight, Share: share, Groups: share * float64(in.Prompts),
			Trajectories: share * float64(out.Trajectories), Samples: known[t.Task].Samples,
		}
		if d.Groups > 0 && d.Samples > 0 {
			d.Batches = float64(d.Samples) / d.Groups
		}
		out.Tasks = append(out.Tasks, d)
	}
	if in.Pool.Mode == "" {
		return out, nil
	}
	pool, err := policy.NewPool(in.Pool, in.Seed)
	if err != nil {
		return out, err
	}
	drawPolicies(&out, pool, in)
	return out, nil
}

func drawPolicies(out *dryRun, pool *policy.Pool, in dryInput) {
	members := pool.Members()
	for _, m := range members {
		pure := m.Share
		if pool.Mode() == policy.ModeCross {
			pure = math.Pow(m.Share, float64(in.Turns))
		}
		out.Policies = append(out.Policies, dryShare{
			Policy: m.Policy, Letter: m.Letter, Share: m.Share, Turns: m.Share * float64(out.Trajectories*in.Turns), Pure: pure,
		})
	}
	for g := range in.Prompts {
		row := dryGroup{Group: int64(g)}
		for m := range in.GroupSize {
			letters := make([]byte, 0, in.Turns)
			for t := range in.Turns {
				i := pool.Draw(policy.DrawKey{Group: int64(g), Member: m, Turn: t})
				out.Policies[i].Drawn++
				letters = append(letters, members[i].Letter...)
			}
			row.Members = append(row.Members, string(letters))
		}
		if g < dryExamples {
			out.Example = append(out.Example, row)
		}
	}
}
