package train

import (
	"context"
	"errors"
	"fmt"

	"agentrl/internal/engine"
	"agentrl/internal/eval"
	"agentrl/internal/experiment"
	"agentrl/internal/metric"
	"agentrl/internal/policy"
	"agentrl/internal/trajectory"
)

// evalName is the name under which the weights of an evaluation are pinned while training goes on.
const evalName = "eval"

// evaluation is one under way.
type evaluation struct {
	version int64
	cancel  context.CancelFunc
	done    chan struct{}
	list    []*trajectory.Trajectory
	failed  []*trajectory.Trajectory
	err     error
}

// evalDue says whether the present version is to be evaluated: before the first update, and every so many.
func (l *loop) evalDue() bool {
	if len(l.cfg.Eval.Tasks) == 0 || l.st.EvalDone >= l.st.Step || l.eval != nil && l.eval.version >= l.st.Step {
		return false
	}
	if l.st.Step == 0 {
		return true
	}
	return l.cfg.Eval.Every > 0 && l.st.Step%int64(l.cfg.Eval.Every) == 0
}

func (l *loop) plan() eval.Plan {
	p := eval.Plan{Samples: l.cfg.Eval.Samples, Attempts: l.cfg.Eval.Attempts, Concurrency: min(evalConcurrency, l.cfg.Pipeline.Concurrency),
		Retries: l.cfg.Pipeline.Retries, FirstGroup: l.st.NextEvalGroup}
	for _, t := range l.cfg.Eval.Tasks {
		p.Tasks = append(p.Tasks, eval.Task{Name: t, Samples: l.specs[t].Samples})
	}
	return p
}

// startEval begins to evaluate the current version, with the current policy only, on a pinned copy of its weights.
func (l *loop) startEval(ctx context.Context) error {
	l.weights.Set(map[string]engine.Version{evalName: l.weights.Version(policy.Current)})
	return l.beginEval(ctx, l.st.Step)
}

func (l *loop) beginEval(parent context.Context, version int64) error {
	pool, err := policy.NewPool(experiment.Pool{Mode: policy.ModeSingle, Members: []experiment.Member{{Policy: policy.Current, Weight: 1}}}, 0)
	if err != nil {
		return err
	}
	player := l.player("eval")
	player.Pool = pool
	player.Alias = map[string]string{policy.Current: evalName}
	if t := l.cfg.Eval.Temperature; t > 0 {
		player.Sampling.Temperature = t
	}
	plan := l.plan()
	l.st.EvalSamples = plan.Episodes()
	ctx, cancel := context.WithCancel(parent)
	e := &evaluation{version: version, cancel: cancel, done: make(chan struct{})}
	l.eval = e
	go func() {
		defer close(e.done)
		e.list, e.failed, e.err = eval.Run(ctx, player.Play, plan)
	}()
	return nil
}

// repeatEval starts the evaluation again that was under way when the checkpoint was saved.
func (l *loop) repeatEval(ctx context.Context) error {
	version := l.st.Pending
	l.st.Pending = -1
	if l.weights.Version(evalName) < 0 {
		if version != l.st.Step {
			return l.event(ctx, "warn", "eval", "the evaluation of step %d was lost with its weights", version)
		}
		return l.startEval(ctx)
	}
	return l.beginEval(ctx, version)
}

// collectEval takes the result of the evaluation into a commit when there is one, and with wait set when there will be.
func (l *loop) collectEval(parent context.Context, c *experiment.StepCommit, wait bool) error {
	e := l.eval
	if e == nil {
		return nil
	}
	if !wait {
		select {
		case <-e.done:
		default:
			return nil
		}
	} else {
		ctx, cancel := l.interruptible(parent)
		defer cancel()
		l.hooks.status(parent, experiment.PhaseEval, true)
		select {
		case <-e.done:
		case <-ctx.Done():
			return interrupted(ctx, ctx.Err())
		}
	}
	if e.err != nil {
		if errors.Is(e.err, context.Canceled) && parent.Err() == nil {
			return errStop
		}
		return e.err
	}
	l.eval = nil
	e.cancel()
	l.weights.Set(map[string]engine.Version{evalName: -1})
	if err := l.weights.Collect(); err != nil {
		return err
	}
	l.recordEval(e, c)
	score := eval.Overall(eval.Collect(e.list))
	return l.event(parent, "info", "eval", "step %d: pass@1 %.3f (95 %% band %.3f to %.3f) on %d episodes", e.version, score.Pass, score.Low, score.High, score.Episodes)
}

// recordEval adds the points and the trajectories of a finished evaluation, under the step whose weights were measured.
func (l *loop) recordEval(e *evaluation, c *experiment.StepCommit) {
	items := eval.Collect(e.list)
	p := &points{step: e.version, at: l.d.Now(), tokens: l.st.Tokens, samples: l.st.Trajectories}
	add := func(task string, s eval.Score) {
		p.of(metric.EvalPass, task, s.Pass)
		p.of(metric.EvalLow, task, s.Low)
		p.of(metric.EvalHigh, task, s.High)
		p.of(metric.EvalReward, task, s.Reward)
		p.of(metric.EvalIncomplete, task, float64(s.Incomplete))
		for k, v := range s.PassK {
			if k > 1 {
				p.of(fmt.Sprintf("%s%d", metric.EvalPassK, k), task, v)
			}
		}
	}
	overall := eval.Overall(items)
	add("", overall)
	for task, s := range eval.ByTask(items) {
		add(task, s)
	}
	for _, t := range append(e.failed, e.list...) {
		t.Step = e.version
		c.Trajectories = append(c.Trajectories, t)
	}
	c.Points = append(c.Points, p.list...)
	l.st.EvalDone = max(l.st.EvalDone, e.version)
	l.st.NextEvalGroup += l.plan().Groups()
	if overall.Episodes > 0 {
		if e.version == 0 {
			l.st.PassStart = overall.Pass
		}
		l.st.PassEnd = overall.Pass
	}
}

// evaluateNow evaluates the current version and waits for it.
func (l *loop) evaluateNow(ctx context.Context) error {
	if l.eval == nil {
		if err := l.startEval(ctx); err != nil {
			return err
		}
	}
	var c experiment.StepCommit
	if err := l.collectEval(ctx, &c, true); err != nil {
		return err
	}
	c.Progress = l.progress(experiment.PhaseEval)
	if err := l.commit(ctx, c); err != nil {
		return err
	}
	l.d.Progress(l.line(experiment.PhaseEval, c, 0))
	return nil
}

// abandonEval ends an evaluation without a result.
func (l *loop) abandonEval() {
	if l.eval == nil {
		return
	}
	l.eval.cancel()
	<-l.eval.done
	l.eval = nil
}
