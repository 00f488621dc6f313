package native

import (
	"context"

	"agentrl/internal/engine"
	"agentrl/internal/errs"
	"agentrl/internal/nn"
)

var errLater = errs.New(errs.Unavailable, "not built yet")

func openDir(opt *Options) (base, error) { return base{}, errLater }

func readModel(dir string, c nn.Config) (*nn.Model, error) { return nil, errLater }

// Save writes a checkpoint.
func (e *Engine) Save(ctx context.Context, dir string, keep map[string]engine.Version) error {
	return errLater
}

// Load reads a checkpoint.
func (e *Engine) Load(ctx context.Context, dir string) (map[string]engine.Version, error) {
	return nil, errLater
}
