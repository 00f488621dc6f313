package web

import (
	"math"

	"agentrl/internal/env"
	"agentrl/internal/experiment"
	"agentrl/internal/policy"
	"agentrl/internal/rollout"
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

// dryTask is the share of one task. Samples is 0 when the task's size is not known here; Drawn counts the example.
type dryTask struct {
	Task         string  `json:"task"`
	Code         string  `json:"code,omitempty"`
	Weight       float64 `json:"weight"`
	Share        float64 `json:"share"`
	Groups       float64 `json:"groups"`       // per batch, on average
	Trajectories float64 `json:"trajectories"` // per batch, on average
	Samples      int64   `json:"samples,omitempty"`
	Batches      float64 `json:"batches_per_pass,omitempty"` // batches until every sample has come once
	Drawn        int     `json:"drawn"`                      // groups of the example
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

// dryGroup is one drawn group: its sample, and the policies of its members' turns, a letter per turn. Task is empty
// without a mix, Sample -1 where the task's size is not known.
type dryGroup struct {
	Group   int64    `json:"group"`
	Task    string   `json:"task,omitempty"`
	Sample  int64    `json:"sample"`
	Members []string `json:"members,omitempty"`
}

const dryExamples = 8

// dry computes a dry run. The example is drawn by the mix and the pool that runs use, so with a run's seed it shows that
// run's first batch.
func dry(in dryInput, specs []env.Spec) (dryRun, error) {
	out := dryRun{Groups: in.Prompts, Trajectories: in.Prompts * in.GroupSize, Turns: in.Turns, Mode: in.Pool.Mode}
	groups := make([]dryGroup, in.Prompts)
	for i := range groups {
		groups[i] = dryGroup{Group: int64(i), Sample: -1}
	}
	if len(in.Mix) > 0 {
		if err := drawTasks(&out, groups, in, specs); err != nil {
			return out, err
		}
	}
	if in.Pool.Mode != "" {
		pool, err := policy.NewPool(in.Pool, in.Seed)
		if err != nil {
			return out, renamed(err, "pool")
		}
		drawPolicies(&out, groups, pool, in)
	}
	out.Example = groups[:min(len(groups), dryExamples)]
	return out, nil
}

func drawTasks(out *dryRun, groups []dryGroup, in dryInput, specs []env.Spec) error {
	known := map[string]env.Spec{}
	for _, sp := range specs {
		known[sp.Task] = sp
	}
	var sum float64
	var mix []rollout.MixTask
	for _, t := range in.Mix {
		sum += t.Weight
		mix = append(mix, rollout.MixTask{Task: t.Task, Weight: t.Weight, Samples: max(1, known[t.Task].Samples)})
	}
	mixer, err := rollout.NewMixer(mix, in.Seed)
	if err != nil {
		return renamed(err, "mix")
	}
	drawn := map[string]int{}
	for i := range groups {
		d := mixer.Next()
		drawn[d.Task]++
		groups[i].Task = d.Task
		if known[d.Task].Samples > 0 {
			groups[i].Sample = d.Sample
		}
	}
	for _, t := range in.Mix {
		share := t.Weight / sum
		d := dryTask{
			Task: t.Task, Code: known[t.Task].Code, Weight: t.Weight, Share: share, Groups: share * float64(in.Prompts),
			Trajectories: share * float64(out.Trajectories), Samples: known[t.Task].Samples, Drawn: drawn[t.Task],
		}
		if d.Groups > 0 && d.Samples > 0 {
			d.Batches = float64(d.Samples) / d.Groups
		}
		out.Tasks = append(out.Tasks, d)
	}
	return nil
}

func drawPolicies(out *dryRun, groups []dryGroup, pool *policy.Pool, in dryInput) {
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
	for g := range groups {
		for m := range in.GroupSize {
			letters := make([]byte, 0, in.Turns)
			for t := range in.Turns {
				i := pool.Draw(policy.DrawKey{Group: int64(g), Member: m, Turn: t})
				out.Policies[i].Drawn++
				letters = append(letters, members[i].Letter...)
			}
			groups[g].Members = append(groups[g].Members, string(letters))
		}
	}
}
