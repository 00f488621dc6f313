package store

import (
	"context"
	"encoding/json"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

type workerRow struct {
	ID        string `gorm:"primaryKey"`
	Host      string
	PID       int    `gorm:"column:pid"`
	Queues    string // JSON
	Slots     int
	RunIDs    string `gorm:"column:run_ids"` // JSON
	Version   string
	Kernel    string
	CPUs      int `gorm:"column:cpus"`
	Memory    int64
	StartedAt int64
	SeenAt    int64
	Draining  bool
}

func (workerRow) TableName() string { return "workers" }

// SaveWorker inserts a worker or replaces what is known of it.
func (s *Store) SaveWorker(ctx context.Context, w experiment.Worker) error {
	if w.ID == "" {
		return errs.Field("id", "a worker needs an id")
	}
	queues, err := json.Marshal(w.Queues)
	if err != nil {
		return fail("save worker", err)
	}
	runs, err := json.Marshal(w.RunIDs)
	if err != nil {
		return fail("save worker", err)
	}
	row := workerRow{ID: text(w.ID), Host: text(w.Host), PID: w.PID, Queues: text(string(queues)), Slots: w.Slots, RunIDs: string(runs),
		Version: text(w.Version), Kernel: text(w.Kernel), CPUs: w.CPUs, Memory: w.Memory, StartedAt: micros(w.StartedAt),
		SeenAt: micros(w.SeenAt), Draining: w.Draining}
	return s.write(ctx, "save worker", func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "id"}}, UpdateAll: true}).Create(&row).Error
	})
}

// Workers lists all known workers by id.
func (s *Store) Workers(ctx context.Context) ([]experiment.Worker, error) {
	var rows []workerRow
	if err := s.read(ctx).Order("id").Find(&rows).Error; err != nil {
		return nil, fail("workers", err)
	}
	out := make([]experiment.Worker, len(rows))
	for i, r := range rows {
		w := experiment.Worker{ID: r.ID, Host: r.Host, PID: r.PID, Slots: r.Slots, Version: r.Version, Kernel: r.Kernel, CPUs: r.CPUs,
			Memory: r.Memory, StartedAt: fromMicros(r.StartedAt), SeenAt: fromMicros(r.SeenAt), Draining: r.Draining}
		if err := json.Unmarshal([]byte(r.Queues), &w.Queues); err != nil {
			return nil, fail("workers", err)
		}
		if err := json.Unmarshal([]byte(r.RunIDs), &w.RunIDs); err != nil {
			return nil, fail("workers", err)
		}
		out[i] = w
	}
	return out, nil
}

// DeleteWorker forgets a worker. One that is not known is no error.
func (s *Store) DeleteWorker(ctx context.Context, id string) error {
	return s.write(ctx, "delete worker", func(tx *gorm.DB) error { return tx.Where("id = ?", id).Delete(&workerRow{}).Error })
}
