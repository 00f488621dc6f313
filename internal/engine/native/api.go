package native

import (
	"context"

	"agentrl/internal/engine"
	"agentrl/internal/errs"
	"agentrl/internal/policy"
	"agentrl/internal/tokenizer"
)

// Engine implements engine.Engine. Training calls are serialised by the caller; policies may generate at any time.
type Engine struct {
	opt Options
}

var _ engine.Engine = (*Engine)(nil)

var errLater = errs.New(errs.Unavailable, "not built yet")

// New builds the model, checks its memory budget and starts the sampling service, which Close stops.
func New(opt Options) (*Engine, error) { return &Engine{opt: opt}, nil }

// Tokenizer returns the tokenizer of the model.
func (e *Engine) Tokenizer() *tokenizer.Tokenizer { return e.opt.Tokenizer }

// Forget frees the KV cache kept under a key, when its episode has ended.
func (e *Engine) Forget(cacheKey string) {}

// Capabilities says what the engine can do.
func (e *Engine) Capabilities() engine.Capabilities { return engine.Capabilities{} }

// Forward returns log-probs.
func (e *Engine) Forward(ctx context.Context, batch []engine.Datum, temperature float64) ([][]float32, error) {
	return nil, errLater
}

// ForwardBackward adds gradients.
func (e *Engine) ForwardBackward(ctx context.Context, batch []engine.Datum, loss engine.Loss) (engine.LossOutput, error) {
	return engine.LossOutput{}, errLater
}

// OptimStep updates the weights.
func (e *Engine) OptimStep(ctx context.Context, adam engine.AdamParams) (engine.StepStats, error) {
	return engine.StepStats{}, errLater
}

// Publish makes the current weights available for sampling.
func (e *Engine) Publish(ctx context.Context, v engine.Version) (string, error) { return "", errLater }

// Sampler returns the policy of a version.
func (e *Engine) Sampler(v engine.Version) (policy.Policy, error) { return nil, errLater }

// Release drops a version.
func (e *Engine) Release(v engine.Version) error { return errLater }

// Save writes a checkpoint.
func (e *Engine) Save(ctx context.Context, dir string, keep map[string]engine.Version) error {
	return errLater
}

// Load reads a checkpoint.
func (e *Engine) Load(ctx context.Context, dir string) (map[string]engine.Version, error) {
	return nil, errLater
}

// Close stops the sampling service. It is idempotent.
func (e *Engine) Close() error { return nil }
