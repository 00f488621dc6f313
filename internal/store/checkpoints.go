package store

import (
	"context"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

type checkpointRow struct {
	RunID      int64 `gorm:"primaryKey;autoIncrement:false"`
	Attempt    int
	Step       int64
	WarmupStep int64
	Dir        string `gorm:"primaryKey"`
	Bytes      int64
	CreatedAt  int64 `gorm:"autoCreateTime:false"`
}

func (checkpointRow) TableName() string { return "checkpoints" }

// AddCheckpoint records a saved state; one in the same folder is replaced.
func (s *Store) AddCheckpoint(ctx context.Context, l experiment.Lease, c experiment.CheckpointInfo) error {
	if c.Dir == "" {
		return errs.Field("dir", "a checkpoint needs its folder")
	}
	row := checkpointRow{RunID: l.RunID, Attempt: l.Attempt, Step: c.Step, WarmupStep: c.WarmupStep, Dir: text(c.Dir), Bytes: c.Bytes,
		CreatedAt: micros(c.CreatedAt)}
	if row.CreatedAt == 0 {
		row.CreatedAt = micros(s.clock())
	}
	return s.write(ctx, "add checkpoint", func(tx *gorm.DB) error {
		if _, err := holds(tx, l); err != nil {
			return err
		}
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "run_id"}, {Name: "dir"}}, UpdateAll: true}).Create(&row).Error
	})
}

// DeleteCheckpoint forgets a saved state. One that is not known is no error.
func (s *Store) DeleteCheckpoint(ctx context.Context, l experiment.Lease, dir string) error {
	return s.write(ctx, "delete checkpoint", func(tx *gorm.DB) error {
		if _, err := holds(tx, l); err != nil {
			return err
		}
		return tx.Where("run_id = ? AND dir = ?", l.RunID, text(dir)).Delete(&checkpointRow{}).Error
	})
}

// Checkpoints lists a run's saved states, newest first.
func (s *Store) Checkpoints(ctx context.Context, runID int64) ([]experiment.CheckpointInfo, error) {
	var rows []checkpointRow
	if err := s.read(ctx).Where("run_id = ?", runID).Order("created_at DESC, step DESC, warmup_step DESC").Find(&rows).Error; err != nil {
		return nil, fail("checkpoints", err)
	}
	out := make([]experiment.CheckpointInfo, len(rows))
	for i, r := range rows {
		out[i] = experiment.CheckpointInfo{RunID: r.RunID, Attempt: r.Attempt, Step: r.Step, WarmupStep: r.WarmupStep, Dir: r.Dir,
			Bytes: r.Bytes, CreatedAt: fromMicros(r.CreatedAt)}
	}
	return out, nil
}
