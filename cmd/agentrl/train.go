package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"agentrl/internal/config"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/queue"
	"agentrl/internal/runfile"
	"agentrl/internal/train"
)

// headlessQueue is the label of runs that a command executes itself, so that no worker takes them.
const headlessQueue = "headless"

// headlessExperiment collects the runs of the command line.
const headlessExperiment = "command line"

// realGames is the preset that is nothing without a folder of games.
const realGames = "alfworld-real"

type trainFlags struct {
	json   bool
	print  bool
	resume int64
	seed   int64
}

func (p *program) trainCmd() *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use: "train PRESET|FILE", Short: "Train without a browser, with the same loop", Args: cobra.MaximumNArgs(1),
		Long:    "Trains a preset or a run file in this process and keeps the run in the data directory, where `agentrl serve` shows it.\nThe first interrupt saves a checkpoint and stops; --resume goes on from there.",
		Example: "  agentrl train quickstart --data ./agentrl-data --json\n  agentrl train --print quickstart > my.yaml\n  agentrl train --resume 3",
	}
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object per line on standard output")
	cmd.Flags().BoolVar(&f.print, "print", false, "print the complete run file and stop")
	cmd.Flags().Int64Var(&f.resume, "resume", 0, "id of a stopped run to go on with")
	cmd.Flags().Int64Var(&f.seed, "seed", -1, "use this seed instead of the run file's")
	names := []string{"data", "database-url", "threads", "memory-limit", "alfworld-data"}
	return p.configured(cmd, names, func(ctx context.Context, cfg config.Config, log *slog.Logger, args []string) error {
		if len(args) == 1 && f.resume != 0 {
			return errs.New(errs.Invalid, "give a preset or a run file, or --resume RUN, not both")
		}
		if len(args) == 0 && f.resume == 0 {
			return errs.New(errs.Invalid, "give a preset (%s), a run file, or --resume RUN", strings.Join(presetNames(), ", "))
		}
		var conf experiment.Config
		if len(args) == 1 {
			var err error
			if conf, err = loadRunFile(args[0], cfg.AlfworldData, f.seed, f.print); err != nil {
				return err
			}
		}
		if f.print {
			_, err := p.io.out.Write(runfile.Format(conf))
			return err
		}
		return p.trainHeadless(ctx, cfg, log, conf, f)
	})
}

func presetNames() []string {
	var names []string
	for _, i := range runfile.Presets() {
		names = append(names, i.Name)
	}
	return names
}

// loadRunFile reads a preset or a file and applies the command line's overrides.
func loadRunFile(arg, alfworldData string, seed int64, printing bool) (experiment.Config, error) {
	text, ok := runfile.Preset(arg)
	if ok && arg == realGames && alfworldData == "" && !printing {
		return experiment.Config{}, errs.Field("alfworld-data", "the preset %s plays real games: give their folder with --alfworld-data DIR", arg)
	}
	if !ok {
		f, err := os.Open(arg)
		if err != nil {
			return experiment.Config{}, errs.Wrap(errs.NotFound, err, "%q is neither a preset (%s) nor a file that can be read", arg, strings.Join(presetNames(), ", "))
		}
		defer f.Close()
		if text, err = io.ReadAll(io.LimitReader(f, runfile.MaxBytes+1)); err != nil {
			return experiment.Config{}, err
		}
	}
	conf, problems := runfile.Parse(text, trainableTasks())
	if alfworldData != "" {
		conf.Env.ALFWorld.Data = alfworldData
	}
	if seed >= 0 {
		conf.Seed = uint64(seed)
	}
	if alfworldData != "" || seed >= 0 {
		// Checked again as a whole, since what was missing may be given now.
		_, problems = runfile.Parse(runfile.Format(conf), trainableTasks())
	}
	if len(problems) > 0 && !printing {
		return conf, problemsError(arg, problems)
	}
	return conf, nil
}

// problemsError puts every problem on a line of its own, as compilers do.
func problemsError(file string, problems []runfile.Problem) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s cannot be run:", file)
	for _, q := range problems {
		var at []string
		if q.Line > 0 {
			at = append(at, fmt.Sprintf("line %d", q.Line))
		}
		if q.Path != "" {
			at = append(at, q.Path)
		}
		if len(at) == 0 {
			at = append(at, "the file")
		}
		fmt.Fprintf(&b, "\n  %s: %s", strings.Join(at, ", "), q.Message)
	}
	return errs.New(errs.Invalid, "%s", b.String())
}

// trainHeadless creates or resumes a run and executes it with a worker of its own.
func (p *program) trainHeadless(ctx context.Context, cfg config.Config, log *slog.Logger, conf experiment.Config, f trainFlags) (err error) {
	limitMemory(cfg.MemoryLimit)
	cfg.Queues, cfg.Slots = []string{headlessQueue}, 1
	c, err := openCore(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	run, err := headlessRun(ctx, c, conf, f.resume)
	if err != nil {
		return err
	}
	out := &progressPrinter{json: f.json, out: p.io.out, err: p.io.err}
	results := make(chan train.Result, 1)
	ex := p.executor(c, out.progress)
	ex.result = func(r train.Result) { results <- r }
	w, err := p.startWorker(ctx, c, queue.ExecutorFunc(ex.execute))
	if err != nil {
		return err
	}
	if err := queue.NewEnqueuer(c.redis).Enqueue(ctx, run); err != nil {
		return err
	}
	var res train.Result
	select {
	case res = <-results:
	case <-ctx.Done():
		fmt.Fprintln(p.io.err, "stopping: saving a checkpoint; interrupt again to stop at once")
		if err := c.store.RequestStop(context.WithoutCancel(ctx), run.ID, "stop"); err != nil {
			log.Warn("the stop could not be recorded", slog.Any("err", err))
		}
		res = <-results
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if err := w.Stop(stop); err != nil {
		return err
	}
	return out.end(run.ID, res)
}

// headlessRun inserts the run, or queues an existing one again.
func headlessRun(ctx context.Context, c *core, conf experiment.Config, resume int64) (experiment.Run, error) {
	if resume != 0 {
		run, err := c.store.Run(ctx, resume)
		if err != nil {
			return run, err
		}
		switch run.State {
		case experiment.Queued:
			return run, nil
		case experiment.Running, experiment.Stopping:
			return run, waitForLease(ctx, c, run)
		}
		if err := c.store.Resume(ctx, resume); err != nil {
			return run, err
		}
		return c.store.Run(ctx, resume)
	}
	e, err := c.store.ExperimentByName(ctx, headlessExperiment)
	if errs.CodeOf(err) == errs.NotFound {
		e, err = c.store.CreateExperiment(ctx, experiment.Experiment{Name: headlessExperiment, Description: "runs of agentrl train"})
	}
	if err != nil {
		return experiment.Run{}, err
	}
	return c.store.CreateRun(ctx, experiment.Run{
		ExperimentID: e.ID, Name: conf.Name, Config: conf, ConfigYAML: string(runfile.Format(conf)), Queue: headlessQueue, Seed: conf.Seed,
	})
}

// waitForLease waits until the lease of a process that was killed has run out. A lease that is renewed meanwhile has a
// living holder: Conflict.
func waitForLease(ctx context.Context, c *core, run experiment.Run) error {
	until := func() (time.Time, error) {
		a, err := c.store.Attempts(ctx, run.ID)
		if err != nil || len(a) == 0 {
			return time.Time{}, err
		}
		return slices.MaxFunc(a, func(x, y experiment.Attempt) int { return x.Number - y.Number }).LeaseUntil, nil
	}
	first, err := until()
	if err != nil {
		return err
	}
	wait := time.Until(first)
	c.log.Info("the run has no end on record: waiting for the lease of its last process to run out", slog.Int64("run", run.ID), slog.Duration("wait", wait.Round(time.Second)))
	select {
	case <-time.After(wait + time.Second):
	case <-ctx.Done():
		return ctx.Err()
	}
	last, err := until()
	if err != nil {
		return err
	}
	if last.After(first) {
		return errs.New(errs.Conflict, "run %d is being executed by %s", run.ID, run.WorkerID)
	}
	return nil
}

// progressPrinter shows a headless run: a line that renews itself for people, JSON lines for scripts.
type progressPrinter struct {
	mu   sync.Mutex
	json bool
	out  io.Writer
	err  io.Writer
	last time.Time
}

func (o *progressPrinter) progress(q train.Progress) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.json {
		_ = json.NewEncoder(o.out).Encode(q)
		return
	}
	if time.Since(o.last) < time.Second && q.Step != q.Steps {
		return
	}
	o.last = time.Now()
	switch q.Phase {
	case experiment.PhaseWarmup:
		fmt.Fprintf(o.err, "warm start  step %d of %d  loss %.3f  accuracy %.3f  %.0f s\n", q.Step, q.Steps, q.Loss, q.Accuracy, q.WallSeconds)
	case experiment.PhaseEval:
		fmt.Fprintf(o.err, "evaluation  step %d  pass@1 %.3f  %.0f s\n", q.Step, q.EvalPass, q.WallSeconds)
	default:
		fmt.Fprintf(o.err, "training    step %d of %d  reward %.3f  pass %.3f  staleness %d  %.0f s\n", q.Step, q.Steps, q.RewardMean, q.PassRate, q.StalenessMax, q.WallSeconds)
	}
}

// end prints the last line and turns a failed run into an error.
func (o *progressPrinter) end(run int64, r train.Result) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.json {
		line := struct {
			Phase experiment.Phase `json:"phase"`
			Run   int64            `json:"run"`
			State experiment.State `json:"state"`
			train.Summary
		}{experiment.PhaseDone, run, r.Outcome.State, r.Summary}
		if err := json.NewEncoder(o.out).Encode(line); err != nil {
			return err
		}
	} else {
		s := r.Summary
		fmt.Fprintf(o.err, "run %d %s: pass@1 %.3f -> %.3f on %d episodes, %d trajectories, %d tokens, %.0f s\n", run, r.Outcome.State, s.PassAt1Start, s.PassAt1End, s.EvalSamples, s.Trajectories, s.Tokens, s.WallSeconds)
	}
	switch r.Outcome.State {
	case experiment.Finished:
		return nil
	case experiment.Stopped:
		fmt.Fprintf(o.err, "go on with: agentrl train --resume %d\n", run)
		return nil
	default:
		return errs.New(errs.Internal, "run %d %s: %s", run, r.Outcome.State, r.Outcome.Reason)
	}
}
