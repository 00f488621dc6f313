package train

import (
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"agentrl/internal/engine"
	"agentrl/internal/experiment"
	"agentrl/internal/metric"
	"agentrl/internal/policy"
	"agentrl/internal/rl"
	"agentrl/internal/trajectory"
)

// account turns an update into what is stored of it, and moves the run's totals.
func (l *loop) account(b *batch, version int64, droppedTokens int, out engine.LossOutput, stats engine.StepStats, began time.Time, waited time.Duration) experiment.StepCommit {
	now := l.d.Now()
	seconds := math.Max(now.Sub(began).Seconds(), 1e-9)
	l.st.StepSeconds = blend(l.st.StepSeconds, seconds)
	var c experiment.StepCommit
	for _, g := range b.groups {
		for _, t := range g.Members {
			t.Step, t.Trained = l.st.Step, t.Dropped == ""
			c.Trajectories = append(c.Trajectories, t)
			l.st.Trajectories++
		}
	}
	aside := l.pipe.Aside()
	for _, t := range aside {
		t.Step = l.st.Step
		c.Trajectories = append(c.Trajectories, t)
	}
	c.Groups = b.record(l.run.ID, l.lease.Attempt, l.st.Step)
	for i, g := range b.groups {
		c.Groups[i].AgeSeconds = now.Sub(g.Dispatched).Seconds()
	}

	p := &points{step: l.st.Step, at: now, tokens: l.st.Tokens, samples: l.st.Trajectories}
	for _, t := range l.mix {
		l.taskPoints(p, b, t.Task)
	}
	sampled := l.taskPoints(p, b, "")
	l.agePoints(p, b, version)
	p.add(metric.DroppedStale, float64(droppedTokens))
	s := l.pipe.Stats()
	p.add(metric.GroupsWaiting, float64(s.Waiting))
	p.add(metric.InFlight, float64(s.InFlight))
	p.add(metric.BatchTrajectories, float64(len(b.members)))
	p.add(metric.Excluded, float64(len(aside)))
	p.add(metric.SampledTokensPS, float64(sampled)/seconds)
	p.add(metric.TrainedTokensPS, float64(trainedTokens(b))/seconds)
	p.add(metric.TrajectoriesPS, float64(len(b.members))/seconds)
	p.add(metric.StepSeconds, seconds)
	p.add(metric.WaitSeconds, waited.Seconds())
	p.add(metric.Loss, out.Loss)
	p.add(metric.KL, out.KL)
	p.add(metric.Entropy, out.Entropy)
	p.add(metric.ClipFraction, out.ClipFraction)
	p.add(metric.RatioMax, out.RatioMax)
	p.add(metric.RatioMean, out.RatioMean)
	p.add(metric.GradNorm, stats.GradNorm)
	p.add(metric.LearningRate, l.learningRate())
	if n := residentBytes(); n > 0 {
		p.add(metric.ResidentBytes, n)
	}
	c.Points = p.list
	return c
}

func trainedTokens(b *batch) int {
	n := 0
	for _, t := range b.members {
		n += len(t.Tokens)
	}
	return n
}

// taskPoints logs what the episodes of a task, or of all for an empty name, were like, and returns the tokens that
// policies wrote in them. Dropped members count too: they were played, and leaving them out would flatter the curve.
func (l *loop) taskPoints(p *points, b *batch, task string) int {
	var rewards []float64
	passes, turns, sampled, groups, equal := 0, 0, 0, 0, 0
	ends := map[trajectory.EndState]int{}
	for _, g := range b.groups {
		if task != "" && g.Draw.Task != task {
			continue
		}
		groups++
		if rl.AllEqual(g.Rewards()) {
			equal++
		}
		for _, t := range g.Members {
			rewards = append(rewards, t.Reward)
			turns += len(t.Turns)
			sampled += t.ActionTokens()
			ends[t.Status.EndState()]++
			if t.Pass {
				passes++
			}
		}
	}
	if len(rewards) == 0 {
		return 0
	}
	n := float64(len(rewards))
	mean, std := rl.MeanStd(rewards)
	p.of(metric.RewardMean, task, mean)
	p.of(metric.RewardStd, task, std)
	p.of(metric.PassRate, task, float64(passes)/n)
	p.of(metric.Turns, task, float64(turns)/n)
	p.of(metric.GroupsEqual, task, float64(equal)/float64(groups))
	for _, e := range trajectory.EndStates() {
		p.of(metric.EndStatePrefix+string(e), task, float64(ends[e])/n)
	}
	if task == "" {
		l.st.RewardMean, l.st.PassRate = mean, float64(passes)/n
		return sampled
	}
	if r, ok := b.reports[task]; ok {
		for when, m := range map[string]rl.Moments{"before": r.Before, "after": r.After} {
			for name, v := range map[string]float64{"mean": m.Mean, "std": m.Std, "min": m.Min, "max": m.Max} {
				p.add(metric.AdvMeanPrefix+name+"/"+when+"/"+task, v)
			}
		}
		p.of(metric.DegenerateTok, task, float64(r.DegenerateTokens))
		p.of(metric.DegenerateShift, task, r.DegenerateShift)
		skipped := 0.0
		if r.Skipped {
			skipped = 1
		}
		p.of(metric.TaskNormSkipped, task, skipped)
	}
	return sampled
}

// agePoints logs how old the trained tokens were, the current policy's and the stale copy's apart, and how far the
// sampler's log-probs are from the trainer's on tokens of the very version that was updated.
func (l *loop) agePoints(p *points, b *batch, version int64) {
	var sum, tokens, staleSum, staleTokens, diffSum, diffTokens float64
	var most, staleMost int64
	diffMax := 0.0
	for _, t := range b.members {
		for i := range t.Turns {
			u := &t.Turns[i]
			if !u.Trainable {
				continue
			}
			age, n := version-u.PolicyVersion, float64(u.TokenEnd-u.TokenStart)
			if u.PolicyID == policy.Stale {
				staleSum += float64(age) * n
				staleTokens += n
				staleMost = max(staleMost, age)
			} else {
				sum += float64(age) * n
				tokens += n
				most = max(most, age)
			}
			if age != 0 || len(t.TrainLogprobs) != len(t.Tokens) {
				continue
			}
			for j := u.TokenStart; j < u.TokenEnd; j++ {
				d := math.Abs(float64(t.TrainLogprobs[j]) - float64(t.Logprobs[j]))
				diffMax = math.Max(diffMax, d)
				diffSum += d
				diffTokens++
			}
		}
	}
	l.stalenessMax = most
	p.add(metric.StalenessMean, sum/math.Max(tokens, 1))
	p.add(metric.StalenessMax, float64(most))
	if l.pool.Index(policy.Stale) >= 0 {
		p.add(metric.StaleCopyMean, staleSum/math.Max(staleTokens, 1))
		p.add(metric.StaleCopyMax, float64(staleMost))
		p.add(metric.StaleShare, staleTokens/math.Max(tokens+staleTokens, 1))
	}
	if diffTokens > 0 {
		p.add(metric.LogprobDiffMax, diffMax)
		p.add(metric.LogprobDiffMean, diffSum/diffTokens)
	}
}

// progress is the run's position and headline numbers.
func (l *loop) progress(phase experiment.Phase) experiment.Progress {
	return experiment.Progress{Phase: phase, Step: l.st.Step, Steps: int64(l.cfg.Budget.Steps), WarmupStep: l.st.WarmupStep,
		WarmupSteps: l.st.WarmupSteps, RewardMean: l.st.RewardMean, PassRate: l.st.PassRate, EvalPass: l.st.PassEnd,
		Trajectories: l.st.Trajectories, Tokens: l.st.Tokens, StepSeconds: l.st.StepSeconds, Parameters: l.caps.Parameters}
}

// line is the progress of a headless run.
func (l *loop) line(phase experiment.Phase, _ experiment.StepCommit, loss float64) Progress {
	return Progress{Phase: phase, Step: l.st.Step, Steps: int64(l.cfg.Budget.Steps), RewardMean: math.Max(l.st.RewardMean, -1),
		PassRate: math.Max(l.st.PassRate, 0), StalenessMax: l.stalenessMax, Loss: loss, EvalPass: math.Max(l.st.PassEnd, 0),
		Tokens: l.st.Tokens, WallSeconds: l.st.WallSeconds + l.elapsed()}
}

// residentBytes is the memory of this process on Linux, 0 elsewhere.
func residentBytes() float64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(data))
	if len(f) < 2 {
		return 0
	}
	pages, err := strconv.ParseFloat(f[1], 64)
	if err != nil {
		return 0
	}
	return pages * float64(os.Getpagesize())
}
