package web

import (
	"context"

	"agentrl/internal/experiment"
	"agentrl/internal/metric"
	"agentrl/internal/store"
	"agentrl/internal/trajectory"
)

// readRecords is the reading half of store.Records.
type readRecords interface {
	Series(ctx context.Context, q metric.Query) ([]metric.Series, error)
	Summaries(ctx context.Context, runID int64) ([]metric.Summary, error)
	Groups(ctx context.Context, f store.GroupFilter) ([]experiment.Group, int64, error)
	Trajectories(ctx context.Context, f store.TrajectoryFilter) ([]trajectory.Trajectory, int64, error)
	Trajectory(ctx context.Context, id string) (trajectory.Trajectory, error)
	TrajectoryTokens(ctx context.Context, id string) (tokens []int32, logprobs, train []float32, err error)
}
