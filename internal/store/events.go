package store

import (
	"context"

	"gorm.io/gorm"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

type eventRow struct {
	ID      int64 `gorm:"primaryKey"`
	RunID   int64
	Attempt int
	At      int64
	Level   string
	Kind    string
	Message string
}

func (eventRow) TableName() string { return "events" }

func addEvent(tx *gorm.DB, run int64, attempt int, at int64, level, kind, message string) error {
	return tx.Create(&eventRow{RunID: run, Attempt: attempt, At: at, Level: level, Kind: text(kind), Message: text(message)}).Error
}

// AddEvent appends a line to a run's log. With a lease its run and attempt are used and the lease is checked; a zero
// lease writes to e.RunID without a check.
func (s *Store) AddEvent(ctx context.Context, l experiment.Lease, e experiment.Event) error {
	switch e.Level {
	case "":
		e.Level = "info"
	case "info", "warn", "error":
	default:
		return errs.Field("level", "%q is not one of info, warn, error", e.Level)
	}
	at := micros(e.At)
	if at == 0 {
		at = micros(s.clock())
	}
	return s.write(ctx, "add event", func(tx *gorm.DB) error {
		if l == (experiment.Lease{}) {
			if err := exists(tx, &runRow{}, e.RunID, "run"); err != nil {
				return err
			}
		} else {
			if _, err := holds(tx, l); err != nil {
				return err
			}
			e.RunID, e.Attempt = l.RunID, l.Attempt
		}
		return addEvent(tx, e.RunID, e.Attempt, at, e.Level, e.Kind, e.Message)
	})
}

// Events lists a run's events with ids above after, oldest first.
func (s *Store) Events(ctx context.Context, runID, after int64, limit int) ([]experiment.Event, error) {
	_, limit, err := page(0, limit)
	if err != nil {
		return nil, err
	}
	var rows []eventRow
	if err := s.read(ctx).Where("run_id = ? AND id > ?", runID, after).Order("id").Limit(limit).Find(&rows).Error; err != nil {
		return nil, fail("events", err)
	}
	out := make([]experiment.Event, len(rows))
	for i, r := range rows {
		out[i] = experiment.Event{ID: r.ID, RunID: r.RunID, Attempt: r.Attempt, At: fromMicros(r.At), Level: r.Level, Kind: r.Kind, Message: r.Message}
	}
	return out, nil
}
