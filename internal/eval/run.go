package eval

import (
	"context"
	"slices"
	"sync"

	"agentrl/internal/rollout"
	"agentrl/internal/trajectory"
)

// Task is a task to be evaluated and how many samples it has.
type Task struct {
	Name    string
	Samples int64
}

// Plan is a fixed set of samples: the same for every evaluation and every run of the same plan, so that scores compare.
type Plan struct {
	Tasks       []Task
	Samples     int // per task; fewer when the task has fewer
	Attempts    int // episodes per sample
	Concurrency int
	Retries     int // tries of an episode that fails for reasons that are not the agent's
	FirstGroup  int64
}

// sampleSeed fixes which samples of a large task are played.
const sampleSeed = 0x5eed

// Groups returns how many group numbers the plan uses, from FirstGroup on.
func (p Plan) Groups() int64 {
	var n int64
	for _, t := range p.Tasks {
		n += min(int64(p.Samples), t.Samples)
	}
	return n
}

// Episodes returns how many episodes the plan plays.
func (p Plan) Episodes() int { return int(p.Groups()) * p.Attempts }

// Run plays the plan and returns one record per episode, ordered by group and member, and the failed tries before them.
// It stops early with the context's error.
func Run(ctx context.Context, play func(context.Context, rollout.Slot) *trajectory.Trajectory, plan Plan) (done, failed []*trajectory.Trajectory, err error) {
	var slots []rollout.Slot
	group := plan.FirstGroup
	for _, t := range plan.Tasks {
		for i := range min(int64(plan.Samples), t.Samples) {
			d := rollout.Draw{ID: group, Task: t.Name, Sample: rollout.Permute(sampleSeed, t.Samples, i)}
			for a := range plan.Attempts {
				slots = append(slots, rollout.Slot{Draw: d, Member: a})
			}
			group++
		}
	}
	done = make([]*trajectory.Trajectory, len(slots))
	var mu sync.Mutex
	var wait sync.WaitGroup
	next := make(chan int)
	for range min(max(1, plan.Concurrency), len(slots)) {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for i := range next {
				s := slots[i]
				for {
					t := play(ctx, s)
					if t.Status.Class() != trajectory.ClassInfrastructure || s.Retry+1 >= plan.Retries || ctx.Err() != nil {
						done[i] = t
						break
					}
					t.Dropped = "infrastructure"
					mu.Lock()
					failed = append(failed, t)
					mu.Unlock()
					s.Retry++
				}
			}
		}()
	}
	for i := range slots {
		select {
		case next <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	slices.SortFunc(failed, func(a, b *trajectory.Trajectory) int {
		if a.Group != b.Group {
			return int(a.Group - b.Group)
		}
		return a.Member - b.Member
	})
	return done, failed, nil
}
