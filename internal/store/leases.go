package store

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

// holds locks the run's row and checks that the lease is still the latest. Time does not matter here: a lease that ran
// out but was not taken over may still write, because nobody else does. ErrFenced otherwise.
func holds(tx *gorm.DB, l experiment.Lease) (runRow, error) {
	row, err := lockRun(tx, l.RunID)
	if errs.CodeOf(err) == errs.NotFound {
		return row, experiment.ErrFenced
	}
	if err != nil {
		return row, err
	}
	if row.Fence != l.Fence || row.Attempt != l.Attempt || !active(row.State) {
		return row, experiment.ErrFenced
	}
	return row, nil
}

func active(state string) bool {
	return state == string(experiment.Running) || state == string(experiment.Stopping)
}

// Acquire starts a new attempt of a queued run, or of a running or stopping one whose lease ran out, and marks its job
// active. ErrLeased: another worker holds it. Conflict: the run has ended. NotFound.
func (s *Store) Acquire(ctx context.Context, runID int64, w experiment.Worker, now time.Time, ttl time.Duration) (experiment.Run, experiment.Lease, error) {
	var run experiment.Run
	var lease experiment.Lease
	at := micros(now)
	err := s.write(ctx, "acquire", func(tx *gorm.DB) error {
		row, err := lockRun(tx, runID)
		if err != nil {
			return err
		}
		switch {
		case row.State == string(experiment.Queued):
		case active(row.State) && row.LeaseUntil < at:
			if err := loseAttempt(tx, row, w, at); err != nil {
				return err
			}
		case active(row.State):
			return experiment.ErrLeased
		default:
			return errs.New(errs.Conflict, "run %d has ended (%s)", runID, row.State)
		}
		lease = experiment.Lease{RunID: runID, Attempt: row.Attempt + 1, Fence: row.Fence + 1, WorkerID: w.ID}
		state := experiment.Running
		if row.StopRequested != "" {
			state = experiment.Stopping
		}
		set := map[string]any{"state": string(state), "reason": "", "attempt": lease.Attempt, "fence": lease.Fence,
			"lease_until": micros(now.Add(ttl)), "worker_id": text(w.ID), "updated_at": at, "finished_at": 0}
		if row.StartedAt == 0 {
			set["started_at"] = at
		}
		if err := tx.Model(&runRow{}).Where("id = ?", runID).Updates(set).Error; err != nil {
			return err
		}
		a := attemptRow{RunID: runID, Number: lease.Attempt, WorkerID: text(w.ID), Host: text(w.Host), Kernel: text(w.Kernel),
			Fence: lease.Fence, Outcome: string(experiment.Running), StartedAt: at}
		if err := tx.Create(&a).Error; err != nil {
			return err
		}
		job := map[string]any{"state": string(experiment.JobActive), "worker_id": text(w.ID), "started_at": at, "tries": gorm.Expr("tries + 1")}
		if err := openJobs(tx, runID).Updates(job).Error; err != nil {
			return err
		}
		msg := fmt.Sprintf("attempt %d on worker %s", lease.Attempt, w.ID)
		if err := addEvent(tx, runID, lease.Attempt, at, "info", "started", msg); err != nil {
			return err
		}
		run, err = loadRun(tx, runID)
		return err
	})
	if err != nil {
		return experiment.Run{}, experiment.Lease{}, err
	}
	return run, lease, nil
}

// loseAttempt closes the attempt whose worker stopped renewing.
func loseAttempt(tx *gorm.DB, row runRow, w experiment.Worker, at int64) error {
	err := tx.Model(&attemptRow{}).Where("run_id = ? AND number = ?", row.ID, row.Attempt).
		Updates(map[string]any{"outcome": string(experiment.Failed), "reason": "its worker stopped answering", "ended_at": row.LeaseUntil}).Error
	if err != nil {
		return err
	}
	msg := fmt.Sprintf("worker %s stopped answering; worker %s takes the run over", row.WorkerID, w.ID)
	return addEvent(tx, row.ID, row.Attempt, at, "warn", "lost", msg)
}

// Renew extends a lease and returns what was asked of the run meanwhile. ErrFenced: lost.
func (s *Store) Renew(ctx context.Context, l experiment.Lease, now time.Time, ttl time.Duration) (experiment.Signal, error) {
	var sig experiment.Signal
	err := s.write(ctx, "renew", func(tx *gorm.DB) error {
		row, err := holds(tx, l)
		if err != nil {
			return err
		}
		sig = experiment.Signal(row.StopRequested)
		return tx.Model(&runRow{}).Where("id = ?", l.RunID).Update("lease_until", micros(now.Add(ttl))).Error
	})
	return sig, err
}

// SetStart records the checkpoint an attempt began from. From then on points, groups and trajectories of earlier
// attempts beyond it no longer count. A step of -1 is a start before the evaluation at step 0. The same values may be
// given again; Conflict for others.
func (s *Store) SetStart(ctx context.Context, l experiment.Lease, warmup, step int64, kernel string) error {
	if warmup < 0 || step < -1 {
		return errs.New(errs.Invalid, "an attempt starts at warm-start step 0 or later and at step -1 or later")
	}
	return s.write(ctx, "set start", func(tx *gorm.DB) error {
		if _, err := holds(tx, l); err != nil {
			return err
		}
		return begin(tx, l, warmup, step, kernel)
	})
}

// begin is SetStart inside a transaction that holds the lease.
func begin(tx *gorm.DB, l experiment.Lease, warmup, step int64, kernel string) error {
	var a attemptRow
	if err := tx.Where("run_id = ? AND number = ?", l.RunID, l.Attempt).Take(&a).Error; err != nil {
		return err
	}
	if a.Begun {
		if a.StartWarmup == warmup && a.StartStep == step {
			return nil
		}
		return errs.New(errs.Conflict, "attempt %d already started from step %d", l.Attempt, a.StartStep)
	}
	set := map[string]any{"begun": true, "start_warmup": warmup, "start_step": step, "end_step": step}
	if kernel != "" {
		set["kernel"] = text(kernel)
	}
	if err := tx.Model(&attemptRow{}).Where("run_id = ? AND number = ?", l.RunID, l.Attempt).Updates(set).Error; err != nil {
		return err
	}
	if l.Attempt == 1 {
		return nil
	}
	for _, model := range []any{&trajectoryRow{}, &groupRow{}} {
		err := tx.Model(model).Where("run_id = ? AND attempt < ? AND step > ? AND NOT superseded", l.RunID, l.Attempt, step).
			Update("superseded", true).Error
		if err != nil {
			return err
		}
	}
	return rebuildSummaries(tx, l.RunID)
}

// Release ends the attempt and moves run and job to the outcome. A run that is queued again although a stop or cancel
// was asked for ends instead. ErrFenced: lost, nothing changed.
func (s *Store) Release(ctx context.Context, l experiment.Lease, o experiment.Outcome, now time.Time) error {
	jobs := map[experiment.State]experiment.JobState{experiment.Stopped: experiment.JobDone, experiment.Finished: experiment.JobDone,
		experiment.Failed: experiment.JobFailed, experiment.Cancelled: experiment.JobCancelled, experiment.Queued: experiment.JobPending}
	if _, ok := jobs[o.State]; !ok {
		return errs.Field("state", "%q is not one of stopped, finished, failed, cancelled, queued", o.State)
	}
	at := micros(now)
	return s.write(ctx, "release", func(tx *gorm.DB) error {
		row, err := holds(tx, l)
		if err != nil {
			return err
		}
		state := o.State
		if state == experiment.Queued && row.StopRequested != "" {
			state = experiment.Stopped
			if row.StopRequested == "cancel" {
				state = experiment.Cancelled
			}
		}
		set := map[string]any{"state": string(state), "reason": text(o.Reason), "worker_id": "", "lease_until": 0, "stop_requested": "",
			"updated_at": at, "finished_at": at}
		if state == experiment.Queued {
			set["finished_at"] = 0
		}
		if err := tx.Model(&runRow{}).Where("id = ?", l.RunID).Updates(set).Error; err != nil {
			return err
		}
		err = tx.Model(&attemptRow{}).Where("run_id = ? AND number = ?", l.RunID, l.Attempt).
			Updates(map[string]any{"outcome": string(state), "reason": text(o.Reason), "ended_at": at}).Error
		if err != nil {
			return err
		}
		if state == experiment.Queued {
			err = openJobs(tx, l.RunID).Updates(map[string]any{"state": string(experiment.JobPending), "worker_id": ""}).Error
		} else {
			failure := ""
			if state == experiment.Failed {
				failure = o.Reason
			}
			err = endJobs(tx, l.RunID, jobs[state], failure, at)
		}
		if err != nil {
			return err
		}
		level := "info"
		if state == experiment.Failed {
			level = "error"
		}
		return addEvent(tx, l.RunID, l.Attempt, at, level, string(state), o.Reason)
	})
}

// Orphans lists runs that need a worker, oldest first: queued ones, and running or stopping ones whose lease ran out
// before now.
func (s *Store) Orphans(ctx context.Context, now time.Time) ([]experiment.Run, error) {
	var rows []runRow
	err := withExperiment(s.read(ctx)).
		Where("runs.state = ? OR (runs.state IN ? AND runs.lease_until < ?)", string(experiment.Queued),
			[]string{string(experiment.Running), string(experiment.Stopping)}, micros(now)).
		Order("runs.id").Find(&rows).Error
	if err != nil {
		return nil, fail("orphans", err)
	}
	out := make([]experiment.Run, len(rows))
	for i, r := range rows {
		out[i] = r.run()
	}
	return out, nil
}
