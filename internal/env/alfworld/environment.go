// Package alfworld is the household text game of env-alfworld.md: it plays the published game files unchanged and
// generates its own.
package alfworld

import (
	"context"
	"io"

	"agentrl/internal/env"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

// New builds the environment of one task: alfworld-train, alfworld-valid or alfworld-test.
func New(task string, conf experiment.ALFWorld) (env.Environment, error) {
	return nil, errs.New(errs.Unavailable, "task %q is not ready", task)
}

// Tasks builds all environments that conf can serve.
func Tasks(conf experiment.ALFWorld) ([]env.Environment, error) {
	return nil, errs.New(errs.Unavailable, "no task is ready")
}

// ReplayResult counts how stored walkthroughs went.
type ReplayResult struct {
	Games      int
	WonAtLast  int
	Mismatches int
	Details    []string
}

// Replay plays the stored walkthrough of every game below dir; report, which may be nil, is told after every game.
func Replay(ctx context.Context, dir string, report func(done, total int)) (ReplayResult, error) {
	return ReplayResult{}, errs.New(errs.Unavailable, "not ready")
}

// Play lets a person play the game at path.
func Play(ctx context.Context, in io.Reader, out io.Writer, path string) error {
	return errs.New(errs.Unavailable, "not ready")
}
