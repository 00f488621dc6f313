package train

import (
	"context"
	"fmt"
	"math"
	"time"

	"agentrl/internal/engine"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/metric"
	"agentrl/internal/rollout"
)

// The shape of the warm start's learning rate: a linear rise, then half a cosine down to a small share of the peak.
const (
	warmupRise  = 20
	warmupFloor = 0.05
)

// flushEvery is how often warm-start points are stored.
const flushEvery = time.Second

// warmup is the supervised phase on expert trajectories, from where the checkpoint left it.
func (l *loop) warmup(ctx context.Context) error {
	c := l.cfg.Warmup
	if c.Demonstrations == 0 || l.st.Step > 0 || l.st.EvalDone >= 0 {
		return nil
	}
	if l.st.WarmupSteps == 0 {
		if err := l.planWarmup(ctx); err != nil {
			return err
		}
	}
	if l.st.WarmupStep >= l.st.WarmupSteps {
		return nil
	}
	if err := l.event(ctx, "info", "warmup", "warm start on %d demonstrations of the %s expert, %d steps", c.Demonstrations, c.Expert, l.st.WarmupSteps); err != nil {
		return err
	}
	feed, closeFeed := l.startDemos(ctx)
	defer closeFeed()
	var points []metric.Point
	flush := func() error {
		if len(points) == 0 {
			return nil
		}
		err := l.commit(ctx, experiment.StepCommit{Points: points, Progress: l.progress(experiment.PhaseWarmup)})
		points = nil
		return err
	}
	flushed := l.d.Now()
	for l.st.WarmupStep < l.st.WarmupSteps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if l.stopping() {
			if err := flush(); err != nil {
				return err
			}
			return errStop
		}
		batch, err := feed(l.st.DemosPerBatch)
		if err != nil {
			return err
		}
		p, err := l.warmupStep(ctx, batch)
		if err != nil {
			return err
		}
		points = append(points, p...)
		due := l.st.WarmupStep%int64(l.cfg.Checkpoint.Every) == 0 || l.st.WarmupStep == l.st.WarmupSteps
		if due || l.d.Now().Sub(flushed) >= flushEvery {
			if err := flush(); err != nil {
				return err
			}
			flushed = l.d.Now()
		}
		if due {
			if err := l.save(ctx); err != nil {
				return err
			}
		}
	}
	return flush()
}

// planWarmup fixes the size of a batch, in demonstrations, and with it the number of steps.
func (l *loop) planWarmup(ctx context.Context) error {
	list, err := l.firstDemos(ctx, tokenizerDemos)
	if err != nil {
		return err
	}
	tokens := 0
	for _, d := range list {
		tokens += len(d.datum(l.formats[d.task], 0, l.cfg.Sampling.MaxTotalTokens).Tokens)
	}
	mean := float64(tokens) / float64(len(list))
	if mean < 1 {
		return errs.Field("sampling.max_total_tokens", "%d tokens are too few for a single turn of the demonstrations", l.cfg.Sampling.MaxTotalTokens)
	}
	l.st.DemosPerBatch = max(1, int(math.Round(float64(l.cfg.Warmup.BatchTokens)/mean)))
	total := math.Ceil(float64(l.cfg.Warmup.Demonstrations) * l.cfg.Warmup.Epochs)
	l.st.WarmupSteps = int64(math.Max(1, math.Ceil(total/float64(l.st.DemosPerBatch))))
	return nil
}

func (l *loop) warmupStep(ctx context.Context, batch []engine.Datum) ([]metric.Point, error) {
	began := l.d.Now()
	out, err := l.eng.ForwardBackward(ctx, batch, engine.Loss{Kind: engine.CrossEntropy, Reduction: engine.TokenMean, Temperature: 1})
	if err != nil {
		return nil, err
	}
	rate := warmupRate(l.cfg.Warmup.LearningRate, l.st.WarmupStep, l.st.WarmupSteps)
	stats, err := l.eng.OptimStep(ctx, engine.AdamParams{LearningRate: rate, WeightDecay: l.cfg.Algorithm.WeightDecay, GradClip: l.cfg.Algorithm.GradClip})
	if err != nil {
		return nil, err
	}
	if err := l.optimized(ctx, stats); err != nil {
		return nil, err
	}
	l.d.Hook("warmup-step")
	l.st.WarmupStep++
	tokens := 0
	for _, d := range batch {
		tokens += len(d.Tokens)
	}
	l.st.Tokens += int64(tokens)
	now := l.d.Now()
	seconds := math.Max(now.Sub(began).Seconds(), 1e-9)
	l.st.StepSeconds = blend(l.st.StepSeconds, seconds)
	points := &points{step: l.st.WarmupStep, at: now, tokens: l.st.Tokens, samples: l.st.Trajectories}
	points.add(metric.WarmupLoss, out.Loss)
	points.add(metric.WarmupAccuracy, out.Correct)
	points.add(metric.WarmupTokensPS, float64(tokens)/seconds)
	points.add(metric.WarmupGradNorm, stats.GradNorm)
	points.add(metric.WarmupLearningRate, rate)
	l.d.Progress(Progress{Phase: experiment.PhaseWarmup, Step: l.st.WarmupStep, Steps: l.st.WarmupSteps, RewardMean: 0,
		Loss: out.Loss, Accuracy: out.Correct, Tokens: l.st.Tokens, WallSeconds: l.st.WallSeconds + l.elapsed()})
	l.hooks.status(ctx, experiment.PhaseWarmup, false)
	return points.list, nil
}

func warmupRate(peak float64, step, steps int64) float64 {
	rise := int64(warmupRise)
	if steps < 4*rise {
		rise = steps / 4
	}
	if step < rise {
		return peak * float64(step+1) / float64(rise+1)
	}
	x := float64(step-rise) / math.Max(1, float64(steps-rise))
	return peak * (warmupFloor + (1-warmupFloor)*0.5*(1+math.Cos(math.Pi*x)))
}

func blend(mean, value float64) float64 {
	if mean == 0 {
		return value
	}
	return 0.9*mean + 0.1*value
}

// demosAhead is how many demonstrations are played ahead of the training step.
const demosAhead = 64

// startDemos plays demonstrations beside training, in order, and returns how to take the next ones encoded.
func (l *loop) startDemos(parent context.Context) (next func(n int) ([]engine.Datum, error), stop func()) {
	type result struct {
		datum engine.Datum
		err   error
	}
	type job struct {
		index int64
		draw  rollout.Draw
		out   chan result
	}
	ctx, cancel := context.WithCancel(parent)
	t := l.teacher()
	jobs, order := make(chan job), make(chan chan result, demosAhead)
	finished := make(chan struct{})
	workers := 2
	done := make(chan struct{}, workers+1)
	go func() {
		defer func() { done <- struct{}{} }()
		defer close(jobs)
		for i, d := range demoDraws(l.mix, l.cfg.Seed, l.cfg.Warmup.Demonstrations, l.st.WarmupStep*int64(l.st.DemosPerBatch)) {
			out := make(chan result, 1)
			select {
			case order <- out:
			case <-ctx.Done():
				return
			}
			select {
			case jobs <- job{i, d, out}:
			case <-ctx.Done():
				return
			}
		}
	}()
	for range workers {
		go func() {
			defer func() { done <- struct{}{} }()
			for j := range jobs {
				var r result
				demo, err := l.playDemo(ctx, t, j.index, j.draw)
				if r.err = err; err == nil {
					r.datum = demo.datum(l.formats[demo.task], l.cfg.Warmup.ObservationWeight, l.cfg.Sampling.MaxTotalTokens)
				}
				j.out <- r
			}
		}()
	}
	next = func(n int) ([]engine.Datum, error) {
		batch := make([]engine.Datum, 0, n)
		for range n {
			select {
			case out := <-order:
				select {
				case r := <-out:
					if r.err != nil {
						return nil, r.err
					}
					if len(r.datum.Tokens) > 0 {
						batch = append(batch, r.datum)
					}
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		return batch, nil
	}
	stop = func() {
		cancel()
		select {
		case <-finished:
			return
		default:
			close(finished)
		}
		for range workers + 1 {
			<-done
		}
	}
	return next, stop
}

// playDemo tries a demonstration again when its environment fails.
func (l *loop) playDemo(ctx context.Context, t *teacher, index int64, d rollout.Draw) (demo *demonstration, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a demonstration of %s broke off: %v", d.Task, r)
		}
	}()
	for try := 0; ; try++ {
		if demo, err = t.play(ctx, index, d); err == nil || ctx.Err() != nil || try >= l.cfg.Pipeline.Retries {
			return demo, err
		}
		wait := rollout.DefaultBackoff()
		select {
		case <-time.After(wait[min(try, len(wait)-1)]):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
