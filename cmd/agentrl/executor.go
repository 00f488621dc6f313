package main

import (
	"context"
	"errors"
	"log/slog"

	"agentrl/internal/engine"
	"agentrl/internal/engine/native"
	"agentrl/internal/env"
	"agentrl/internal/env/alfworld"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/train"
)

// executor runs attempts for a worker.
type executor struct {
	core     *core
	hooks    hooks
	progress func(train.Progress)
	result   func(train.Result) // may be nil
}

func (p *program) executor(c *core, progress func(train.Progress)) *executor {
	return &executor{core: c, hooks: p.hooks, progress: progress}
}

// execute trains until the run ends, stop is closed or ctx ends.
func (e *executor) execute(ctx context.Context, run experiment.Run, lease experiment.Lease, stop <-chan struct{}) experiment.Outcome {
	gateway, err := gatewayFor(run.Config)
	if err != nil {
		return experiment.Outcome{State: experiment.Failed, Reason: reason(err)}
	}
	res := train.Run(ctx, train.Deps{
		NewEngine: e.newEngine(e.core.log.With(slog.Int64("run", run.ID), slog.Int("attempt", lease.Attempt))),
		Gateway:   gateway,
		Store:     e.core.store,
		Live:      e.core.stream,
		DataDir:   e.core.cfg.Data,
		Log:       e.core.log,
		Stop:      stop,
		Progress:  e.progress,
		Hook:      e.hooks.point,
	}, run, lease)
	if e.result != nil {
		e.result(res)
	}
	return res.Outcome
}

// newEngine builds the engine that the configuration names.
func (e *executor) newEngine(log *slog.Logger) func(context.Context, train.EngineSpec) (engine.Engine, error) {
	return func(_ context.Context, s train.EngineSpec) (engine.Engine, error) {
		threads := s.Conf.Threads
		if threads == 0 {
			threads = e.core.cfg.Threads
		}
		eng, err := native.New(native.Options{
			Base: s.Base, Tokenizer: s.Tokenizer, Seed: s.Seed, Threads: threads, MicroBatchTokens: s.Conf.MicroBatchTokens,
			MemoryLimit: s.Conf.MemoryLimit, MaxContext: s.MaxContext, MaxBatch: s.Concurrency, Versions: s.Versions, Logger: log,
		})
		if err != nil {
			return nil, err // a nil *native.Engine in the interface would not compare equal to nil
		}
		return eng, nil
	}
}

// gatewayFor gives access to the environments of a configuration.
func gatewayFor(c experiment.Config) (env.Gateway, error) {
	envs, err := alfworld.Tasks(c.Env.ALFWorld)
	if err != nil {
		return nil, err
	}
	return env.NewLocal(envs...)
}

// reason is the text of an error that may be shown.
func reason(err error) string {
	var e *errs.Error
	if errors.As(err, &e) {
		if e.Field != "" {
			return e.Field + ": " + e.Message
		}
		return e.Message
	}
	return "internal error: " + err.Error()
}
