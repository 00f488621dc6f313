package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

// CreateRun inserts the run (queued), its configuration, its pending job and a "queued" event in one transaction.
// NotFound: no such experiment.
func (s *Store) CreateRun(ctx context.Context, r experiment.Run) (experiment.Run, error) {
	if strings.TrimSpace(r.Name) == "" {
		return experiment.Run{}, errs.Field("name", "a run needs a name")
	}
	conf, err := json.Marshal(r.Config)
	if err != nil {
		return experiment.Run{}, errs.Wrap(errs.Invalid, err, "the configuration cannot be stored")
	}
	now := micros(s.clock())
	p := progressToRow(r.Progress)
	if r.Progress == (experiment.Progress{}) {
		p.RewardMean, p.PassRate, p.EvalPass = unknownReward, unknownRate, unknownRate
	}
	row := runRow{ExperimentID: r.ExperimentID, Name: text(r.Name), OwnerID: r.OwnerID, State: string(experiment.Queued),
		Queue: text(r.Queue), Seed: int64(r.Seed), ForkedFrom: r.ForkedFrom, P: p, CreatedAt: now, UpdatedAt: now}
	var out experiment.Run
	err = s.write(ctx, "create run", func(tx *gorm.DB) error {
		res := tx.Model(&experimentRow{}).Where("id = ?", r.ExperimentID).Update("runs", gorm.Expr("runs + 1"))
		if err := need(res, "experiment %d", r.ExperimentID); err != nil {
			return err
		}
		if err := tx.Create(&row).Error; err != nil {
			return err
		}
		if err := tx.Create(&configRow{RunID: row.ID, ConfigYAML: text(r.ConfigYAML), ConfigJSON: string(conf)}).Error; err != nil {
			return err
		}
		if err := addJob(tx, row, now); err != nil {
			return err
		}
		msg := "waits for a worker"
		if r.ForkedFrom != 0 {
			msg = fmt.Sprintf("forked from run %d; waits for a worker", r.ForkedFrom)
		}
		if err := addEvent(tx, row.ID, 0, now, "info", "queued", msg); err != nil {
			return err
		}
		out, err = loadRun(tx, row.ID)
		return err
	})
	return out, err
}

// Run returns a run with its configuration. NotFound.
func (s *Store) Run(ctx context.Context, id int64) (experiment.Run, error) {
	return loadRun(s.read(ctx), id)
}

// CountRuns counts runs by state; states without runs are absent.
func (s *Store) CountRuns(ctx context.Context) (map[experiment.State]int64, error) {
	return counts[experiment.State](s.read(ctx), "runs")
}

// RequestStop asks for "stop" or "cancel". A queued run ends at once, a running one becomes stopping and its worker
// learns of it at the next renewal. A cancel overrides an earlier stop, never the other way round. Conflict: the run has
// ended.
func (s *Store) RequestStop(ctx context.Context, id int64, sig experiment.Signal) error {
	if sig != "stop" && sig != "cancel" {
		return errs.Field("signal", "%q is not one of stop, cancel", sig)
	}
	return s.write(ctx, "request stop", func(tx *gorm.DB) error {
		row, err := lockRun(tx, id)
		if err != nil {
			return err
		}
		now := micros(s.clock())
		set := map[string]any{"updated_at": now}
		switch experiment.State(row.State) {
		case experiment.Queued:
			end := experiment.Stopped
			if sig == "cancel" {
				end = experiment.Cancelled
			}
			set["state"], set["reason"], set["finished_at"] = string(end), "before it started", now
		case experiment.Running, experiment.Stopping:
			set["state"] = string(experiment.Stopping)
			if row.StopRequested == "cancel" || row.StopRequested == string(sig) {
				return nil
			}
			set["stop_requested"] = string(sig)
		default:
			return errs.New(errs.Conflict, "run %d has ended (%s)", id, row.State)
		}
		if err := tx.Model(&runRow{}).Where("id = ?", id).Updates(set).Error; err != nil {
			return err
		}
		if row.State == string(experiment.Queued) {
			if err := endJobs(tx, id, experiment.JobCancelled, "", now); err != nil {
				return err
			}
		}
		return addEvent(tx, id, row.Attempt, now, "info", string(sig), string(sig)+" asked for")
	})
}

// Resume queues a stopped, failed or cancelled run again with a new pending job. Conflict: any other state.
func (s *Store) Resume(ctx context.Context, id int64) error {
	return s.write(ctx, "resume", func(tx *gorm.DB) error {
		row, err := lockRun(tx, id)
		if err != nil {
			return err
		}
		switch experiment.State(row.State) {
		case experiment.Stopped, experiment.Failed, experiment.Cancelled:
		default:
			return errs.New(errs.Conflict, "run %d is %s; only stopped, failed or cancelled runs can be resumed", id, row.State)
		}
		now := micros(s.clock())
		set := map[string]any{"state": string(experiment.Queued), "reason": "", "stop_requested": "", "finished_at": 0, "updated_at": now}
		if err := tx.Model(&runRow{}).Where("id = ?", id).Updates(set).Error; err != nil {
			return err
		}
		if err := addJob(tx, row, now); err != nil {
			return err
		}
		return addEvent(tx, id, row.Attempt, now, "info", "queued", "resumed; waits for a worker")
	})
}
