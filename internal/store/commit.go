package store

import (
	"context"

	"gorm.io/gorm"

	"agentrl/internal/experiment"
)

// CommitStep writes points, trajectories, groups and progress of one step in one transaction. Repeating a commit, as
// after an answer that was lost, changes nothing. ErrFenced: the lease is lost. Conflict: a point contradicts one that
// is stored. An attempt that never called SetStart began from nothing.
func (s *Store) CommitStep(ctx context.Context, l experiment.Lease, c experiment.StepCommit) error {
	return s.write(ctx, "commit step", func(tx *gorm.DB) error {
		if _, err := holds(tx, l); err != nil {
			return err
		}
		var a attemptRow
		if err := tx.Select("begun").Where("run_id = ? AND number = ?", l.RunID, l.Attempt).Take(&a).Error; err != nil {
			return err
		}
		if !a.Begun {
			if err := begin(tx, l, 0, 0, ""); err != nil {
				return err
			}
		}
		if err := appendPoints(tx, l, c.Points); err != nil {
			return err
		}
		if err := s.insertTrajectories(tx, l, c.Trajectories); err != nil {
			return err
		}
		if err := insertGroups(tx, l, c.Groups); err != nil {
			return err
		}
		p := progressToRow(c.Progress)
		set := map[string]any{"phase": p.Phase, "step": p.Step, "steps": p.Steps, "warmup_step": p.WarmupStep, "warmup_steps": p.WarmupSteps,
			"reward_mean": p.RewardMean, "pass_rate": p.PassRate, "eval_pass": p.EvalPass, "trajectories": p.Trajectories,
			"tokens": p.Tokens, "step_seconds": p.StepSeconds, "parameters": p.Parameters, "updated_at": micros(s.clock())}
		if err := tx.Model(&runRow{}).Where("id = ?", l.RunID).Updates(set).Error; err != nil {
			return err
		}
		return tx.Model(&attemptRow{}).Where("run_id = ? AND number = ?", l.RunID, l.Attempt).Update("end_step", p.Step).Error
	})
}
