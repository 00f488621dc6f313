package experiment

import (
	"errors"

	"agentrl/internal/metric"
	"agentrl/internal/trajectory"
)

// ErrFenced is returned by every write under a lease that another attempt has taken over. The holder must stop at once
// and write nothing more.
var ErrFenced = errors.New("this attempt no longer holds the run")

// ErrLeased is returned when a run is asked for that another worker holds.
var ErrLeased = errors.New("another worker holds this run")

// Group is the record of one prompt group, for the groups table.
type Group struct {
	RunID      int64     `json:"run_id"`
	Attempt    int       `json:"attempt"`
	Step       int64     `json:"step"`
	Draw       int64     `json:"draw"`
	Task       string    `json:"task"`
	Sample     int64     `json:"sample"`
	Size       int       `json:"size"` // planned members
	Rewards    []float64 `json:"rewards"`
	Members    []string  `json:"members"` // trajectory ids, parallel to Rewards
	Letters    []string  `json:"letters"` // policy letters per member
	Mean       float64   `json:"mean"`
	Spread     float64   `json:"spread"` // unbiased std of Rewards
	Passes     int       `json:"passes"`
	AllEqual   bool      `json:"all_equal"`
	AgeSeconds float64   `json:"age_seconds"` // from dispatch to training
	Staleness  int64     `json:"staleness"`
	Dropped    string    `json:"dropped,omitempty"`
}

// StepCommit is everything one step records, written in one transaction or not at all.
type StepCommit struct {
	Points       []metric.Point
	Trajectories []*trajectory.Trajectory
	Groups       []Group
	Progress     Progress
}
