package store

import (
	"context"

	"gorm.io/gorm"

	"agentrl/internal/experiment"
)

type attemptRow struct {
	RunID       int64 `gorm:"primaryKey;autoIncrement:false"`
	Number      int   `gorm:"primaryKey;autoIncrement:false"`
	WorkerID    string
	Host        string
	Kernel      string
	Fence       int64
	Begun       bool // SetStart was called; only then do earlier attempts' later points cease to count
	StartWarmup int64
	StartStep   int64
	EndStep     int64
	Outcome     string
	Reason      string
	StartedAt   int64
	EndedAt     int64
}

func (attemptRow) TableName() string { return "attempts" }

// loadAttempts reads a run's attempts in order.
func loadAttempts(db *gorm.DB, runID int64) ([]attemptRow, error) {
	var rows []attemptRow
	err := db.Where("run_id = ?", runID).Order("number").Find(&rows).Error
	return rows, fail("attempts", err)
}

// Attempts lists a run's attempts in order. The latest carries the lease's end while it holds the run.
func (s *Store) Attempts(ctx context.Context, runID int64) ([]experiment.Attempt, error) {
	rows, err := loadAttempts(s.read(ctx), runID)
	if err != nil {
		return nil, err
	}
	var run runRow
	if err := s.read(ctx).Where("id = ?", runID).Take(&run).Error; err != nil {
		return nil, missing("attempts", err, "run %d", runID)
	}
	out := make([]experiment.Attempt, len(rows))
	for i, r := range rows {
		out[i] = experiment.Attempt{RunID: r.RunID, Number: r.Number, WorkerID: r.WorkerID, Host: r.Host, Kernel: r.Kernel, Fence: r.Fence,
			StartWarmup: r.StartWarmup, StartStep: r.StartStep, EndStep: r.EndStep, Outcome: experiment.State(r.Outcome),
			Reason: r.Reason, StartedAt: fromMicros(r.StartedAt), EndedAt: fromMicros(r.EndedAt)}
		if r.Number == run.Attempt {
			out[i].LeaseUntil = fromMicros(run.LeaseUntil)
		}
	}
	return out, nil
}
