package train

import (
	"context"
	"errors"
	"math"
	"time"

	"agentrl/internal/engine"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/policy"
	"agentrl/internal/rl"
	"agentrl/internal/rollout"
)

// prepare publishes the weights with which the RL phase begins or goes on, and evaluates them before the first update.
func (l *loop) prepare(ctx context.Context) error {
	if l.weights.Version(policy.Current) < 0 {
		if err := l.publishWeights(ctx, engine.Version(l.st.Step)); err != nil {
			return err
		}
	}
	if l.pool.Index(policy.Stale) >= 0 && l.weights.Version(policy.Stale) < 0 {
		l.weights.Set(map[string]engine.Version{policy.Stale: l.weights.Version(policy.Current)})
		if l.st.Step > 0 {
			if err := l.event(ctx, "warn", "resumed", "the checkpoint lacks the stale copy; it starts again from the current weights"); err != nil {
				return err
			}
		}
	}
	if err := l.reference(ctx); err != nil {
		return err
	}
	if l.st.Pending >= 0 {
		if err := l.repeatEval(ctx); err != nil {
			return err
		}
	}
	evaluated := false
	for l.evalDue() || l.eval != nil && (l.st.Step == 0 || l.cfg.Pipeline.Mode == "sync") {
		if err := l.evaluateNow(ctx); err != nil {
			return err
		}
		evaluated = true
	}
	if evaluated {
		return l.save(ctx)
	}
	return nil
}

// reference freezes the policy at the start of the RL phase for the KL penalty. A checkpoint carries it along.
func (l *loop) reference(ctx context.Context) error {
	if l.cfg.Algorithm.KL.Coef == 0 {
		return nil
	}
	var ok bool
	if l.ref, ok = l.eng.(engine.Referencer); !ok {
		return errs.Field("algorithm.kl.coef", "the engine keeps no reference policy; only 0 is allowed")
	}
	if l.st.Reference {
		return nil
	}
	l.st.Reference = true
	return l.ref.SetReference(ctx)
}

// publishWeights makes the engine's weights the current version, and the stale copy's when that is due.
func (l *loop) publishWeights(ctx context.Context, v engine.Version) error {
	if err := l.weights.Room(ctx, versionsResident-1); err != nil {
		return err
	}
	if err := l.weights.Prepare(ctx); err != nil {
		return err
	}
	if _, err := l.eng.Publish(ctx, v); err != nil {
		return err
	}
	l.weights.Track(v)
	set := map[string]engine.Version{policy.Current: v}
	if every := l.pool.RefreshEvery(); every > 0 && int64(v)%int64(every) == 0 {
		set[policy.Stale] = v
	}
	l.weights.Set(set)
	return l.weights.Collect()
}

// player plays the episodes of a phase.
func (l *loop) player(phase string) *rollout.Player {
	p := &rollout.Player{
		Gateway: l.d.Gateway, Tokenizer: l.tok, Formats: l.formats, Pool: l.pool, Weights: l.weights, Hooks: l.hooks, Now: l.d.Now,
		Backoff: rollout.DefaultBackoff(), RunID: l.run.ID, Attempt: l.lease.Attempt,
		Seed: policy.Hash(l.cfg.Seed, purposeSample), Phase: phase, Sampling: l.cfg.Sampling, Abnormal: l.cfg.Algorithm.AbnormalReward,
		TurnTimeout: l.cfg.Pipeline.TurnTimeout.Std(), EpisodeTimeout: l.cfg.Pipeline.EpisodeTimeout.Std(),
	}
	if f, ok := l.eng.(interface{ Forget(cacheKey string) }); ok {
		p.Forget = f.Forget
	}
	return p
}

func (l *loop) startPipeline(ctx context.Context) error {
	mixer, err := rollout.NewMixer(l.mix, policy.Hash(l.cfg.Seed, purposeMix))
	if err != nil {
		return err
	}
	if l.st.Position.Mixer.Counts != nil {
		if err := mixer.Restore(l.st.Position.Mixer); err != nil {
			return err
		}
	}
	c := l.cfg.Pipeline
	l.pipe = rollout.NewPipeline(rollout.PipelineOptions{
		Play: l.player("rl").Play, Mixer: mixer, Requeue: l.st.Position.Draws, Sync: c.Mode == "sync",
		GroupSize: l.cfg.Algorithm.GroupSize, GroupMin: l.cfg.GroupMinimum(), Gate: (c.MaxStaleness + 1) * c.BatchPrompts,
		Concurrency: c.Concurrency, QueueMax: l.cfg.QueueLimit(), BufferMax: l.cfg.BufferLimit(), Retries: c.Retries,
		Backoff: rollout.DefaultBackoff(), Seed: policy.Hash(l.cfg.Seed, purposeJitter), GroupTimeout: c.GroupTimeout.Std(), Now: l.d.Now,
	}, l.st.Position.Counts)
	l.pipe.Start(ctx)
	return nil
}

func (l *loop) rlElapsed() float64 {
	if !l.rlRunning {
		return 0
	}
	return l.d.Now().Sub(l.rlBegan).Seconds()
}

// spent says whether the budget of the RL phase is used up.
func (l *loop) spent() bool {
	b := l.cfg.Budget
	if b.Steps > 0 && l.st.Step >= int64(b.Steps) {
		return true
	}
	return b.WallTime > 0 && l.st.RLSeconds+l.rlElapsed() >= b.WallTime.Std().Seconds()
}

// train is the RL phase (method.md 6.2).
func (l *loop) train(ctx context.Context) error {
	if l.spent() {
		return nil
	}
	if err := l.event(ctx, "info", "rl", "reinforcement learning from step %d", l.st.Step); err != nil {
		return err
	}
	if err := l.startPipeline(ctx); err != nil {
		return err
	}
	l.rlBegan, l.rlRunning = l.d.Now(), true
	if l.st.WarmupStep > 0 && l.st.Step == 0 {
		l.st.StepSeconds = 0
	}
	for !l.spent() {
		if err := l.update(ctx); err != nil {
			return err
		}
		if l.stopping() {
			return errStop
		}
	}
	return nil
}

// update is one step: collect, advantages, loss, optimizer, publish, evaluation, commit, checkpoint.
func (l *loop) update(ctx context.Context) error {
	began := l.d.Now()
	b, dropped, err := l.collect(ctx)
	if err != nil {
		return err
	}
	waited := l.d.Now().Sub(began)
	b.advantages(l.cfg.Algorithm)
	l.d.Hook("optimizer-step")
	out, stats, err := l.optimize(ctx, b)
	if err != nil {
		return err
	}
	l.d.Hook("optimizer-done")
	version := l.st.Step // the version that was updated
	l.st.Step++
	if err := l.publishWeights(ctx, engine.Version(l.st.Step)); err != nil {
		return err
	}
	for _, g := range b.groups {
		l.pipe.Resolve(g, l.requeue(g))
	}
	commit := l.account(b, version, dropped, out, stats, began, waited)
	if err := l.collectEval(ctx, &commit, false); err != nil {
		return err
	}
	if l.evalDue() {
		if l.cfg.Pipeline.Mode == "sync" || l.spent() {
			if err := l.startEval(ctx); err != nil {
				return err
			}
			if err := l.collectEval(ctx, &commit, true); err != nil {
				return l.unlessStopped(ctx, err, commit)
			}
		} else {
			// An evaluation that takes longer than the steps between two holds training up rather than losing its turn.
			if err := l.collectEval(ctx, &commit, true); err != nil {
				return l.unlessStopped(ctx, err, commit)
			}
			if err := l.startEval(ctx); err != nil {
				return err
			}
		}
	}
	commit.Progress = l.progress(experiment.PhaseRL)
	if err := l.commit(ctx, commit); err != nil {
		return err
	}
	l.d.Progress(l.line(experiment.PhaseRL, commit, out.Loss))
	l.hooks.status(ctx, experiment.PhaseRL, true)
	return l.checkpointIfDue(ctx)
}

// unlessStopped stores a finished step whose wait for an evaluation was cut short by a stop: the step counts, and the
// evaluation is repeated after the resume.
func (l *loop) unlessStopped(ctx context.Context, err error, c experiment.StepCommit) error {
	if errors.Is(err, errStop) {
		c.Progress = l.progress(experiment.PhaseRL)
		if err := l.commit(ctx, c); err != nil {
			return err
		}
	}
	return err
}

// checkpointIfDue saves every so many steps, but never while an evaluation is under way: its points belong before the
// checkpoint's step, so they must be stored first.
func (l *loop) checkpointIfDue(ctx context.Context) error {
	if l.st.Step-l.savedStep < int64(l.cfg.Checkpoint.Every)-l.savedStep%int64(l.cfg.Checkpoint.Every) || l.eval != nil {
		return nil
	}
	return l.save(ctx)
}

// requeue says whether a draw is played once more: its group was lost to age, not to its rewards.
func (l *loop) requeue(g *rollout.Group) bool {
	if len(usable(g)) > 0 {
		return false
	}
	for _, t := range g.Members {
		if t.Dropped == droppedStale {
			return true
		}
	}
	return false
}

// collect takes complete groups until there are enough within their age, and with dynamic sampling with different
// rewards (method.md 6.2, 6.3, 7.3).
func (l *loop) collect(parent context.Context) (*batch, int, error) {
	ctx, cancel := l.interruptible(parent)
	defer cancel()
	need := l.cfg.BatchMinimum()
	if l.cfg.Pipeline.Mode == "sync" {
		need = l.cfg.Pipeline.BatchPrompts
	} else if l.st.Step == 0 {
		need = int(float64(need) * l.cfg.Pipeline.FirstBatchFactor)
	}
	b := &batch{}
	bounds := ageLimits(l.cfg)
	kept, taken, droppedTokens := 0, 0, 0
	refill := need * l.cfg.Algorithm.MaxRefill
	for kept < need {
		most := 0
		if l.cfg.Pipeline.BatchMax > 0 {
			most = l.cfg.Pipeline.BatchMax - kept
		}
		l.hooks.status(parent, experiment.PhaseRL, false)
		groups, err := l.pipe.Take(ctx, min(need-kept, l.takeAtMost()), most)
		if err != nil {
			return nil, 0, interrupted(ctx, err)
		}
		for _, g := range groups {
			b.groups = append(b.groups, g)
			taken++
			ok, tokens := bounds.screen(g, l.st.Step, l.cfg.GroupMinimum())
			droppedTokens += tokens
			if ok && l.cfg.Algorithm.DynamicSampling && rl.AllEqual(rewardsOf(usable(g))) {
				for _, t := range usable(g) {
					t.Dropped = droppedAllEqual
				}
				ok = false
			}
			if ok {
				kept++
				continue
			}
			// Given back at once, so that the gate lets a replacement through.
			l.pipe.Resolve(g, l.requeue(g))
		}
		if l.cfg.Algorithm.DynamicSampling && kept > 0 && taken >= refill {
			break
		}
	}
	return b, droppedTokens, nil
}

// takeAtMost keeps a wait for several groups within what the buffer can hold.
func (l *loop) takeAtMost() int {
	return max(1, l.cfg.BufferLimit()/l.cfg.Algorithm.GroupSize)
}

// optimize runs the loss and the optimizer over the batch.
func (l *loop) optimize(ctx context.Context, b *batch) (engine.LossOutput, engine.StepStats, error) {
	data, of := b.data()
	if len(data) == 0 {
		return engine.LossOutput{}, engine.StepStats{}, nil
	}
	a := l.cfg.Algorithm
	loss := engine.Loss{Kind: engine.PPO, Reduction: engine.Reduction(a.LossReduction), Temperature: l.cfg.Sampling.Temperature,
		ClipLow: a.Clip.Low, ClipHigh: a.Clip.High, ClipDual: a.Clip.Dual, KLCoef: a.KL.Coef, EntropyCoef: a.EntropyCoef}
	if l.ref != nil {
		refs, err := l.ref.ForwardReference(ctx, data, l.cfg.Sampling.Temperature)
		if err != nil {
			return engine.LossOutput{}, engine.StepStats{}, err
		}
		for i := range data {
			data[i].RefLogprobs = refs[i]
		}
	}
	adam := engine.AdamParams{LearningRate: l.learningRate(), WeightDecay: a.WeightDecay, GradClip: a.GradClip}
	var total engine.LossOutput
	var stats engine.StepStats
	parts := 0
	for epoch := range a.Epochs {
		for m := range a.Minibatches {
			lo, hi := m*len(data)/a.Minibatches, (m+1)*len(data)/a.Minibatches
			if lo == hi {
				continue
			}
			out, err := l.eng.ForwardBackward(ctx, data[lo:hi], loss)
			if err != nil {
				return total, stats, err
			}
			s, err := l.eng.OptimStep(ctx, adam)
			if err != nil {
				return total, stats, err
			}
			if err := l.optimized(ctx, s); err != nil {
				return total, stats, err
			}
			if epoch == 0 {
				for i, lp := range out.Logprobs {
					of[lo+i].TrainLogprobs = pad(lp, len(of[lo+i].Tokens))
				}
			}
			parts++
			merge(&total, out, parts)
			stats.GradNorm = math.Max(stats.GradNorm, s.GradNorm)
			stats.Skipped = stats.Skipped || s.Skipped
		}
	}
	for _, t := range of {
		l.st.Tokens += int64(len(t.Tokens))
	}
	return total, stats, nil
}

// merge folds the output of a further part into running means and maxima.
func merge(total *engine.LossOutput, out engine.LossOutput, parts int) {
	w := 1 / float64(parts)
	mean := func(a *float64, v float64) { *a += (v - *a) * w }
	mean(&total.Loss, out.Loss)
	mean(&total.Entropy, out.Entropy)
	mean(&total.KL, out.KL)
	mean(&total.ClipFraction, out.ClipFraction)
	mean(&total.RatioMean, out.RatioMean)
	total.RatioMax = math.Max(total.RatioMax, out.RatioMax)
	total.Tokens += out.Tokens
}

func pad(v []float32, n int) []float32 {
	out := make([]float32, n)
	copy(out, v)
	return out
}

// maxSkipped is how many optimizer steps in a row may be skipped for gradients that are not finite.
const maxSkipped = 10

func (l *loop) optimized(ctx context.Context, s engine.StepStats) error {
	if !s.Skipped {
		l.st.Skipped = 0
		return nil
	}
	l.st.Skipped++
	if l.st.Skipped >= maxSkipped {
		return errs.New(errs.Invalid, "the gradients were not finite in %d steps in a row; lower the learning rate", l.st.Skipped)
	}
	return l.event(ctx, "warn", "skipped", "the gradients were not finite; the weights stay as they are")
}

func (l *loop) learningRate() float64 {
	a := l.cfg.Algorithm
	rate := a.LearningRate
	if l.st.Step < int64(a.WarmupSteps) {
		rate *= float64(l.st.Step+1) / float64(a.WarmupSteps)
	}
	if a.LRSchedule == "linear" {
		done := 0.0
		if l.cfg.Budget.Steps > 0 {
			done = float64(l.st.Step) / float64(l.cfg.Budget.Steps)
		}
		if w := l.cfg.Budget.WallTime; w > 0 {
			done = math.Max(done, (l.st.RLSeconds+l.rlElapsed())/w.Std().Seconds())
		}
		rate *= math.Max(0, 1-done)
	}
	return rate
}

// finish is the last evaluation and the last checkpoint.
func (l *loop) finish(ctx context.Context) error {
	if l.pipe != nil {
		l.st.RLSeconds += l.rlElapsed()
		l.rlRunning = false
		// What is still under way belongs to no update any more.
		l.pipe.Stop()
	}
	var commit experiment.StepCommit
	if l.eval != nil {
		if err := l.evaluateNow(ctx); err != nil {
			return err
		}
	}
	if len(l.cfg.Eval.Tasks) > 0 && l.st.EvalDone < l.st.Step {
		if err := l.startEval(ctx); err != nil {
			return err
		}
		if err := l.collectEval(ctx, &commit, true); err != nil {
			return err
		}
	}
	commit.Progress = l.progress(experiment.PhaseDone)
	if err := l.commit(ctx, commit); err != nil {
		return err
	}
	if err := l.save(ctx); err != nil {
		return err
	}
	l.hooks.status(ctx, experiment.PhaseDone, true)
	return l.event(ctx, "info", "finished", "finished after %d steps in %s", l.st.Step,
		(time.Duration(l.st.WallSeconds+l.elapsed()) * time.Second).String())
}
