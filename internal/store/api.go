// Package store keeps everything in SQL: SQLite or Postgres behind one set of repositories.
package store

import (
	"context"
	"time"

	"agentrl/internal/auth"
	"agentrl/internal/experiment"
	"agentrl/internal/metric"
	"agentrl/internal/trajectory"
)

// API is everything the store offers, on both dialects. Consumers declare the part they use; the compiler holds the
// two together where cmd wires them. Methods return *errs.Error with NotFound, Conflict or Invalid for what a user can
// cause, experiment.ErrFenced and experiment.ErrLeased for lost and held leases; everything else is internal.
type API interface {
	Users
	Runs
	Leases
	Records
	Saved
	Ping(ctx context.Context) error
	Close() error
}

// Users is people, sessions, tokens, audit and small settings.
type Users interface {
	CountUsers(ctx context.Context) (int64, error)
	CreateUser(ctx context.Context, u auth.User) (auth.User, error) // Conflict: email taken
	UserByID(ctx context.Context, id int64) (auth.User, error)
	UserByEmail(ctx context.Context, email string) (auth.User, error)
	ListUsers(ctx context.Context) ([]auth.User, error)
	UpdateUser(ctx context.Context, u auth.User) error // refuses to remove the last enabled admin: Conflict

	CreateSession(ctx context.Context, s auth.Session) error
	SessionByHash(ctx context.Context, hash []byte) (auth.Session, auth.User, error)
	TouchSession(ctx context.Context, hash []byte, at time.Time) error
	Sessions(ctx context.Context, userID int64) ([]auth.Session, error)
	DeleteSession(ctx context.Context, userID int64, hash []byte) error
	DeleteSessionsBefore(ctx context.Context, createdBefore, seenBefore time.Time) (int64, error)

	CreateToken(ctx context.Context, t auth.Token) (auth.Token, error)
	TokenByHash(ctx context.Context, hash []byte) (auth.Token, auth.User, error)
	Tokens(ctx context.Context, userID int64) ([]auth.Token, error)
	RevokeToken(ctx context.Context, userID, id int64, at time.Time) error
	TouchToken(ctx context.Context, id int64, at time.Time) error

	Audit(ctx context.Context, e auth.AuditEntry) error
	AuditLog(ctx context.Context, before int64, limit int) ([]auth.AuditEntry, error)

	Setting(ctx context.Context, key string) (string, error) // NotFound when unset
	SetSetting(ctx context.Context, key, value string) error
}

// RunFilter selects and orders runs. Zero fields do not filter.
type RunFilter struct {
	ExperimentID int64
	States       []experiment.State
	Search       string // substring of name or experiment, or an id
	Sort         string // id | name | state | step | reward | pass | eval | created | updated; "-" in front: descending
	Cursor       string // opaque, from the previous page
	Limit        int    // at most 200
}

// RunPage is one page of runs. Total counts all that match.
type RunPage struct {
	Runs  []experiment.Run
	Next  string // empty on the last page
	Total int64
}

// Runs is experiments, runs, attempts, jobs and workers.
type Runs interface {
	CreateExperiment(ctx context.Context, e experiment.Experiment) (experiment.Experiment, error) // Conflict: name taken
	Experiment(ctx context.Context, id int64) (experiment.Experiment, error)
	ExperimentByName(ctx context.Context, name string) (experiment.Experiment, error)
	Experiments(ctx context.Context) ([]experiment.Experiment, error)
	UpdateExperiment(ctx context.Context, e experiment.Experiment) error

	// CreateRun inserts the run (queued), its pending job and a "queued" event in one transaction.
	CreateRun(ctx context.Context, r experiment.Run) (experiment.Run, error)
	Run(ctx context.Context, id int64) (experiment.Run, error) // with Config and ConfigYAML
	ListRuns(ctx context.Context, f RunFilter) (RunPage, error)
	CountRuns(ctx context.Context) (map[experiment.State]int64, error)
	// RequestStop asks for signal "stop" or "cancel". A queued run ends at once; a running one becomes stopping.
	RequestStop(ctx context.Context, id int64, s experiment.Signal) error // Conflict: already ended
	// Resume queues a stopped, failed or cancelled run again with a new pending job.
	Resume(ctx context.Context, id int64) error // Conflict: not resumable

	Attempts(ctx context.Context, runID int64) ([]experiment.Attempt, error)
	Events(ctx context.Context, runID, after int64, limit int) ([]experiment.Event, error)
	Checkpoints(ctx context.Context, runID int64) ([]experiment.CheckpointInfo, error)

	Jobs(ctx context.Context, states []experiment.JobState, limit int) ([]experiment.Job, error) // newest first
	Job(ctx context.Context, id int64) (experiment.Job, error)
	JobCounts(ctx context.Context) (map[experiment.JobState]int64, error)

	SaveWorker(ctx context.Context, w experiment.Worker) error // insert or heartbeat
	Workers(ctx context.Context) ([]experiment.Worker, error)
	DeleteWorker(ctx context.Context, id string) error
}

// Leases decides which worker executes a run. All decisions are single transactions on the server's rows.
type Leases interface {
	// Acquire starts a new attempt of a queued run, or of a running or stopping one whose lease ran out, and marks its
	// job active. ErrLeased: another worker holds it. Conflict: the run has ended.
	Acquire(ctx context.Context, runID int64, w experiment.Worker, now time.Time, ttl time.Duration) (experiment.Run, experiment.Lease, error)
	// Renew extends a lease and returns what was asked of the run meanwhile. ErrFenced: lost.
	Renew(ctx context.Context, l experiment.Lease, now time.Time, ttl time.Duration) (experiment.Signal, error)
	// SetStart records the checkpoint an attempt began from; called once, before the first commit.
	SetStart(ctx context.Context, l experiment.Lease, warmup, step int64, kernel string) error
	// Release ends the attempt and moves run and job to the outcome. ErrFenced: lost, nothing changed.
	Release(ctx context.Context, l experiment.Lease, o experiment.Outcome, now time.Time) error
	// Orphans lists runs that need a worker: queued ones, and running or stopping ones whose lease ran out before now.
	Orphans(ctx context.Context, now time.Time) ([]experiment.Run, error)
}

// Records is what the training loop writes and pages read. Writes check the lease in their own transaction.
type Records interface {
	CommitStep(ctx context.Context, l experiment.Lease, c experiment.StepCommit) error
	AddEvent(ctx context.Context, l experiment.Lease, e experiment.Event) error // a zero lease writes without a check
	AddCheckpoint(ctx context.Context, l experiment.Lease, c experiment.CheckpointInfo) error
	DeleteCheckpoint(ctx context.Context, l experiment.Lease, dir string) error

	Series(ctx context.Context, q metric.Query) ([]metric.Series, error) // winning lineage first, then faint tails
	Summaries(ctx context.Context, runID int64) ([]metric.Summary, error)

	Groups(ctx context.Context, f GroupFilter) (groups []experiment.Group, total int64, err error)
	Trajectories(ctx context.Context, f TrajectoryFilter) (list []trajectory.Trajectory, total int64, err error) // headers only
	Trajectory(ctx context.Context, id string) (trajectory.Trajectory, error)                                    // with messages, without token arrays
	TrajectoryTokens(ctx context.Context, id string) (tokens []int32, logprobs, train []float32, err error)
}

// GroupFilter selects groups of a run. Step -1 means all. Superseded attempts' groups are left out.
type GroupFilter struct {
	RunID  int64
	Step   int64
	Task   string
	Sort   string // step | spread | mean | age | passes; "-" in front: descending
	Offset int
	Limit  int // at most 200
}

// TrajectoryFilter selects trajectories of a run. Step and Draw -1 mean all; empty strings do not filter.
type TrajectoryFilter struct {
	RunID    int64
	Step     int64
	Draw     int64
	Phase    string // rl | eval
	Task     string
	EndState string
	Pass     *bool
	Offset   int
	Limit    int // at most 200; newest first, members of one draw by member
}

// Saved is versioned task mixes and policy pools.
type Saved interface {
	SaveObject(ctx context.Context, s experiment.Saved) (experiment.Saved, error) // next version of (Kind, Name)
	Objects(ctx context.Context, kind string) ([]experiment.Saved, error)         // latest version of each name
	ObjectVersions(ctx context.Context, kind, name string) ([]experiment.Saved, error)
	Object(ctx context.Context, id int64) (experiment.Saved, error)
}
