package store

import (
	"context"
	"database/sql"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/trajectory"
)

// trajectoryRow is the header: what lists show. Messages and token arrays lie in tables of their own.
type trajectoryRow struct {
	ID              string `gorm:"primaryKey"`
	RunID           int64
	Attempt         int
	Step            int64
	Phase           string
	Draw            int64
	Member          int
	Retry           int
	Task            string
	Sample          int64
	Status          string
	EndState        string
	Error           string
	Trained         bool
	Dropped         string
	Conflict        bool
	EnvReward       sql.NullFloat64
	Reward          sql.NullFloat64
	Pass            bool
	AdvantageGroup  sql.NullFloat64
	Advantage       sql.NullFloat64
	DispatchVersion int64
	Staleness       int64
	StartedAt       int64
	EndedAt         int64
	NumTurns        int
	Letters         string
	NumTokens       int
	ActionTokens    int
	Superseded      bool
}

func (trajectoryRow) TableName() string { return "trajectories" }

type messagesRow struct {
	TrajectoryID string `gorm:"primaryKey"`
	Data         []byte
}

func (messagesRow) TableName() string { return "trajectory_messages" }

type tokensRow struct {
	TrajectoryID string `gorm:"primaryKey"`
	Data         []byte
}

func (tokensRow) TableName() string { return "trajectory_tokens" }

func trajectoryToRow(l experiment.Lease, t *trajectory.Trajectory) trajectoryRow {
	return trajectoryRow{ID: t.ID, RunID: l.RunID, Attempt: l.Attempt, Step: t.Step, Phase: text(t.Phase), Draw: t.Group, Member: t.Member,
		Retry: t.Retry, Task: text(t.Task), Sample: t.Sample, Status: text(string(t.Status)), EndState: string(t.Status.EndState()),
		Error: text(t.Error), Trained: t.Trained, Dropped: text(t.Dropped), Conflict: t.Conflict, EnvReward: number(t.EnvReward),
		Reward: number(t.Reward), Pass: t.Pass, AdvantageGroup: number(t.AdvantageGroup), Advantage: number(t.Advantage),
		DispatchVersion: t.DispatchVersion, Staleness: t.Staleness, StartedAt: micros(t.StartedAt), EndedAt: micros(t.EndedAt),
		NumTurns: len(t.Turns), Letters: text(t.Letters()), NumTokens: len(t.Tokens), ActionTokens: t.ActionTokens()}
}

func (r trajectoryRow) trajectory() trajectory.Trajectory {
	return trajectory.Trajectory{ID: r.ID, RunID: r.RunID, Attempt: r.Attempt, Step: r.Step, Phase: r.Phase, Group: r.Draw, Member: r.Member,
		Retry: r.Retry, Task: r.Task, Sample: r.Sample, Status: trajectory.Status(r.Status), Error: r.Error, Trained: r.Trained,
		Dropped: r.Dropped, Conflict: r.Conflict, EnvReward: fromNumber(r.EnvReward), Reward: fromNumber(r.Reward), Pass: r.Pass,
		AdvantageGroup: fromNumber(r.AdvantageGroup), Advantage: fromNumber(r.Advantage), DispatchVersion: r.DispatchVersion,
		Staleness: r.Staleness, StartedAt: fromMicros(r.StartedAt), EndedAt: fromMicros(r.EndedAt),
		NumTurns: r.NumTurns, TurnLetters: r.Letters, NumTokens: r.NumTokens, NumActionTokens: r.ActionTokens}
}

// insertTrajectories writes headers, messages and tokens in batches. One that is already stored stays as it is.
func (s *Store) insertTrajectories(tx *gorm.DB, l experiment.Lease, list []*trajectory.Trajectory) error {
	if len(list) == 0 {
		return nil
	}
	heads := make([]trajectoryRow, 0, len(list))
	bodies := make([]messagesRow, 0, len(list))
	arrays := make([]tokensRow, 0, len(list))
	for _, t := range list {
		if t.ID == "" || text(t.ID) != t.ID {
			return errs.Field("id", "%q is not a trajectory id", t.ID)
		}
		if (t.RunID != 0 && t.RunID != l.RunID) || (t.Attempt != 0 && t.Attempt != l.Attempt) {
			return errs.New(errs.Invalid, "trajectory %s belongs to run %d attempt %d, not to run %d attempt %d", t.ID, t.RunID, t.Attempt, l.RunID, l.Attempt)
		}
		body, err := s.packMessages(t)
		if err != nil {
			return err
		}
		blob, err := s.packTokens(t)
		if err != nil {
			return err
		}
		heads = append(heads, trajectoryToRow(l, t))
		bodies = append(bodies, messagesRow{TrajectoryID: t.ID, Data: body})
		arrays = append(arrays, tokensRow{TrajectoryID: t.ID, Data: blob})
	}
	keep := tx.Clauses(clause.OnConflict{DoNothing: true})
	if err := keep.CreateInBatches(&heads, 200).Error; err != nil {
		return err
	}
	if err := keep.CreateInBatches(&bodies, 200).Error; err != nil {
		return err
	}
	return keep.CreateInBatches(&arrays, 200).Error
}

// Trajectories lists headers, newest step and draw first, the members of a draw by member. Attempts that a resume left
// behind are not in the list.
func (s *Store) Trajectories(ctx context.Context, f TrajectoryFilter) ([]trajectory.Trajectory, int64, error) {
	offset, limit, err := page(f.Offset, f.Limit)
	if err != nil {
		return nil, 0, err
	}
	match := func() *gorm.DB {
		q := s.read(ctx).Model(&trajectoryRow{}).Where("run_id = ? AND superseded = ?", f.RunID, false)
		if f.Step >= 0 {
			q = q.Where("step = ?", f.Step)
		}
		if f.Draw >= 0 {
			q = q.Where("draw = ?", f.Draw)
		}
		for column, v := range map[string]string{"phase": f.Phase, "task": f.Task, "end_state": f.EndState} {
			if v != "" {
				q = q.Where(column+" = ?", text(v))
			}
		}
		if f.Pass != nil {
			q = q.Where("pass = ?", *f.Pass)
		}
		return q
	}
	var total int64
	if err := match().Count(&total).Error; err != nil {
		return nil, 0, fail("trajectories", err)
	}
	var rows []trajectoryRow
	if err := match().Order("step DESC, draw DESC, member, phase, retry, id").Offset(offset).Limit(limit).Find(&rows).Error; err != nil {
		return nil, 0, fail("trajectories", err)
	}
	out := make([]trajectory.Trajectory, len(rows))
	for i, r := range rows {
		out[i] = r.trajectory()
	}
	return out, total, nil
}

// Trajectory returns one with its tools, messages and turns, without token arrays. NotFound.
func (s *Store) Trajectory(ctx context.Context, id string) (trajectory.Trajectory, error) {
	var row trajectoryRow
	if err := s.read(ctx).Where("id = ?", text(id)).Take(&row).Error; err != nil {
		return trajectory.Trajectory{}, missing("trajectory", err, "trajectory %q", id)
	}
	var body messagesRow
	if err := s.read(ctx).Where("trajectory_id = ?", id).Take(&body).Error; err != nil {
		return trajectory.Trajectory{}, fail("trajectory messages", err)
	}
	t := row.trajectory()
	return t, s.unpackMessages(body.Data, &t)
}

// TrajectoryTokens returns the token arrays of a trajectory, parallel to each other; train is nil if it was not trained
// on. NotFound.
func (s *Store) TrajectoryTokens(ctx context.Context, id string) (tokens []int32, logprobs, train []float32, err error) {
	var row tokensRow
	if err := s.read(ctx).Where("trajectory_id = ?", text(id)).Take(&row).Error; err != nil {
		return nil, nil, nil, missing("trajectory tokens", err, "trajectory %q", id)
	}
	return s.unpackTokens(row.Data)
}
