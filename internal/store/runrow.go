package store

import (
	"encoding/json"
	"math"

	"gorm.io/gorm"

	"agentrl/internal/experiment"
)

// Values of headline numbers that are not known yet.
const (
	unknownReward = -2
	unknownRate   = -1
)

// runRow holds what lists show. The configuration lies in a table of its own.
type runRow struct {
	ID            int64 `gorm:"primaryKey"`
	ExperimentID  int64
	Name          string
	OwnerID       int64
	State         string
	Reason        string
	Queue         string
	Seed          int64 // the bits of a uint64
	Attempt       int
	Fence         int64
	LeaseUntil    int64
	WorkerID      string
	StopRequested string
	ForkedFrom    int64
	P             progressRow `gorm:"embedded"`
	CreatedAt     int64       `gorm:"autoCreateTime:false"`
	StartedAt     int64
	FinishedAt    int64
	UpdatedAt     int64  `gorm:"autoUpdateTime:false"`
	Experiment    string `gorm:"->;-:migration"` // from the join
}

func (runRow) TableName() string { return "runs" }

type progressRow struct {
	Phase        string
	Step         int64
	Steps        int64
	WarmupStep   int64
	WarmupSteps  int64
	RewardMean   float64
	PassRate     float64
	EvalPass     float64
	Trajectories int64
	Tokens       int64
	StepSeconds  float64
	Parameters   int64
}

type configRow struct {
	RunID      int64  `gorm:"primaryKey;autoIncrement:false"`
	ConfigYAML string `gorm:"column:config_yaml"`
	ConfigJSON string `gorm:"column:config_json"`
}

func (configRow) TableName() string { return "run_configs" }

func progressToRow(p experiment.Progress) progressRow {
	known := func(v, unknown float64) float64 {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return unknown
		}
		return v
	}
	return progressRow{Phase: string(p.Phase), Step: p.Step, Steps: p.Steps, WarmupStep: p.WarmupStep, WarmupSteps: p.WarmupSteps,
		RewardMean: known(p.RewardMean, unknownReward), PassRate: known(p.PassRate, unknownRate), EvalPass: known(p.EvalPass, unknownRate),
		Trajectories: p.Trajectories, Tokens: p.Tokens, StepSeconds: known(p.StepSeconds, 0), Parameters: p.Parameters}
}

func (r progressRow) progress() experiment.Progress {
	return experiment.Progress{Phase: experiment.Phase(r.Phase), Step: r.Step, Steps: r.Steps, WarmupStep: r.WarmupStep,
		WarmupSteps: r.WarmupSteps, RewardMean: r.RewardMean, PassRate: r.PassRate, EvalPass: r.EvalPass,
		Trajectories: r.Trajectories, Tokens: r.Tokens, StepSeconds: r.StepSeconds, Parameters: r.Parameters}
}

func (r runRow) run() experiment.Run {
	return experiment.Run{ID: r.ID, ExperimentID: r.ExperimentID, Experiment: r.Experiment, Name: r.Name, OwnerID: r.OwnerID,
		State: experiment.State(r.State), Reason: r.Reason, Queue: r.Queue, Seed: uint64(r.Seed), Attempt: r.Attempt,
		WorkerID: r.WorkerID, StopRequested: r.StopRequested, ForkedFrom: r.ForkedFrom, Progress: r.P.progress(),
		CreatedAt: fromMicros(r.CreatedAt), StartedAt: fromMicros(r.StartedAt), FinishedAt: fromMicros(r.FinishedAt),
		UpdatedAt: fromMicros(r.UpdatedAt)}
}

// withExperiment joins the experiment's name to a query on runs.
func withExperiment(db *gorm.DB) *gorm.DB {
	return db.Table("runs").Select("runs.*, experiments.name AS experiment").Joins("JOIN experiments ON experiments.id = runs.experiment_id")
}

// loadRun reads a run with its configuration inside or outside a transaction.
func loadRun(db *gorm.DB, id int64) (experiment.Run, error) {
	var row runRow
	if err := withExperiment(db).Where("runs.id = ?", id).Take(&row).Error; err != nil {
		return experiment.Run{}, missing("run", err, "run %d", id)
	}
	var c configRow
	if err := db.Where("run_id = ?", id).Take(&c).Error; err != nil {
		return experiment.Run{}, fail("run", err)
	}
	r := row.run()
	r.ConfigYAML = c.ConfigYAML
	return r, fail("run", json.Unmarshal([]byte(c.ConfigJSON), &r.Config))
}

// lockRun reads a run's row and keeps it locked until the transaction ends. NotFound.
func lockRun(tx *gorm.DB, id int64) (runRow, error) {
	var row runRow
	err := forUpdate(tx).Where("id = ?", id).Take(&row).Error
	return row, missing("run", err, "run %d", id)
}
