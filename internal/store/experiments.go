package store

import (
	"context"
	"strings"

	"gorm.io/gorm"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

type experimentRow struct {
	ID          int64 `gorm:"primaryKey"`
	Name        string
	Description string
	OwnerID     int64
	CreatedAt   int64 `gorm:"autoCreateTime:false"`
	Runs        int64
}

func (experimentRow) TableName() string { return "experiments" }

func (r experimentRow) experiment() experiment.Experiment {
	return experiment.Experiment{ID: r.ID, Name: r.Name, Description: r.Description, OwnerID: r.OwnerID,
		CreatedAt: fromMicros(r.CreatedAt), Runs: r.Runs}
}

// CreateExperiment inserts an experiment. Conflict: the name is taken.
func (s *Store) CreateExperiment(ctx context.Context, e experiment.Experiment) (experiment.Experiment, error) {
	row := experimentRow{Name: strings.TrimSpace(text(e.Name)), Description: text(e.Description), OwnerID: e.OwnerID, CreatedAt: micros(e.CreatedAt)}
	if row.Name == "" {
		return experiment.Experiment{}, errs.Field("name", "an experiment needs a name")
	}
	if row.CreatedAt == 0 {
		row.CreatedAt = micros(s.clock())
	}
	err := s.write(ctx, "create experiment", func(tx *gorm.DB) error {
		return taken("create experiment", tx.Create(&row).Error, "an experiment named %q exists", row.Name)
	})
	return row.experiment(), err
}

// Experiment returns an experiment by id. NotFound.
func (s *Store) Experiment(ctx context.Context, id int64) (experiment.Experiment, error) {
	var row experimentRow
	err := s.read(ctx).Where("id = ?", id).Take(&row).Error
	return row.experiment(), missing("experiment", err, "experiment %d", id)
}

// ExperimentByName returns an experiment by its name. NotFound.
func (s *Store) ExperimentByName(ctx context.Context, name string) (experiment.Experiment, error) {
	var row experimentRow
	err := s.read(ctx).Where("name = ?", strings.TrimSpace(text(name))).Take(&row).Error
	return row.experiment(), missing("experiment", err, "experiment named %q", name)
}

// Experiments lists all experiments, newest first.
func (s *Store) Experiments(ctx context.Context) ([]experiment.Experiment, error) {
	var rows []experimentRow
	if err := s.read(ctx).Order("id DESC").Find(&rows).Error; err != nil {
		return nil, fail("experiments", err)
	}
	out := make([]experiment.Experiment, len(rows))
	for i, r := range rows {
		out[i] = r.experiment()
	}
	return out, nil
}

// UpdateExperiment changes name and description. Conflict: the name is taken. NotFound.
func (s *Store) UpdateExperiment(ctx context.Context, e experiment.Experiment) error {
	name := strings.TrimSpace(text(e.Name))
	if name == "" {
		return errs.Field("name", "an experiment needs a name")
	}
	return s.write(ctx, "update experiment", func(tx *gorm.DB) error {
		res := tx.Model(&experimentRow{}).Where("id = ?", e.ID).Updates(map[string]any{"name": name, "description": text(e.Description)})
		if res.Error != nil {
			return taken("update experiment", res.Error, "an experiment named %q exists", name)
		}
		return need(res, "experiment %d", e.ID)
	})
}
