package train

import (
	"context"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

func execute(ctx context.Context, d Deps, run experiment.Run, lease experiment.Lease) Result {
	return Result{Outcome: experiment.Outcome{State: experiment.Failed, Reason: "not ready"}, Err: errs.New(errs.Unavailable, "not ready")}
}
