package store

import (
	"context"

	"gorm.io/gorm"

	"agentrl/internal/experiment"
)

type jobRow struct {
	ID         int64 `gorm:"primaryKey"`
	Kind       string
	RunID      int64
	Queue      string
	State      string
	Tries      int
	WorkerID   string
	Error      string
	CreatedAt  int64 `gorm:"autoCreateTime:false"`
	StartedAt  int64
	FinishedAt int64
}

func (jobRow) TableName() string { return "jobs" }

func (r jobRow) job() experiment.Job {
	return experiment.Job{ID: r.ID, Kind: r.Kind, RunID: r.RunID, Queue: r.Queue, State: experiment.JobState(r.State), Tries: r.Tries,
		WorkerID: r.WorkerID, Error: r.Error, CreatedAt: fromMicros(r.CreatedAt), StartedAt: fromMicros(r.StartedAt),
		FinishedAt: fromMicros(r.FinishedAt)}
}

// Jobs lists jobs in the given states (none: all), newest first.
func (s *Store) Jobs(ctx context.Context, states []experiment.JobState, limit int) ([]experiment.Job, error) {
	_, limit, err := page(0, limit)
	if err != nil {
		return nil, err
	}
	q := s.read(ctx).Order("id DESC").Limit(limit)
	if len(states) > 0 {
		in := make([]string, len(states))
		for i, st := range states {
			in[i] = string(st)
		}
		q = q.Where("state IN ?", in)
	}
	var rows []jobRow
	if err := q.Find(&rows).Error; err != nil {
		return nil, fail("jobs", err)
	}
	out := make([]experiment.Job, len(rows))
	for i, r := range rows {
		out[i] = r.job()
	}
	return out, nil
}

// Job returns a job. NotFound.
func (s *Store) Job(ctx context.Context, id int64) (experiment.Job, error) {
	var row jobRow
	err := s.read(ctx).Where("id = ?", id).Take(&row).Error
	return row.job(), missing("job", err, "job %d", id)
}

// JobCounts counts jobs by state; states without jobs are absent.
func (s *Store) JobCounts(ctx context.Context) (map[experiment.JobState]int64, error) {
	return counts[experiment.JobState](s.read(ctx), "jobs")
}

// addJob inserts a pending job for a run.
func addJob(tx *gorm.DB, run runRow, now int64) error {
	return tx.Create(&jobRow{Kind: "train", RunID: run.ID, Queue: run.Queue, State: string(experiment.JobPending), CreatedAt: now}).Error
}

// openJobs selects a run's jobs that have not ended; there is at most one.
func openJobs(tx *gorm.DB, run int64) *gorm.DB {
	return tx.Model(&jobRow{}).Where("run_id = ? AND state IN ?", run, []string{string(experiment.JobPending), string(experiment.JobActive)})
}

// endJobs moves a run's open job to its last state.
func endJobs(tx *gorm.DB, run int64, state experiment.JobState, reason string, now int64) error {
	return openJobs(tx, run).Updates(map[string]any{"state": string(state), "error": text(reason), "finished_at": now}).Error
}
