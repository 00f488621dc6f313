package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"math"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

type groupRow struct {
	RunID      int64 `gorm:"primaryKey;autoIncrement:false"`
	Attempt    int   `gorm:"primaryKey;autoIncrement:false"`
	Step       int64 `gorm:"primaryKey;autoIncrement:false"`
	Draw       int64 `gorm:"primaryKey;autoIncrement:false"`
	Task       string
	Sample     int64
	Size       int
	Members    string // JSON of groupMembers
	Mean       sql.NullFloat64
	Spread     sql.NullFloat64
	Passes     int
	AllEqual   bool
	AgeSeconds sql.NullFloat64
	Staleness  int64
	Dropped    string
	Superseded bool
}

func (groupRow) TableName() string { return "prompt_groups" }

// groupMembers is the part of a group that is never filtered or sorted by. A null reward is not a number.
type groupMembers struct {
	Rewards []*float64 `json:"r"`
	Members []string   `json:"m"`
	Letters []string   `json:"l"`
}

func groupToRow(l experiment.Lease, g experiment.Group) (groupRow, error) {
	m := groupMembers{Members: g.Members, Letters: g.Letters}
	for _, v := range g.Rewards {
		var p *float64
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			p = &v
		}
		m.Rewards = append(m.Rewards, p)
	}
	b, err := json.Marshal(m)
	return groupRow{RunID: l.RunID, Attempt: l.Attempt, Step: g.Step, Draw: g.Draw, Task: text(g.Task), Sample: g.Sample, Size: g.Size,
		Members: text(string(b)), Mean: number(g.Mean), Spread: number(g.Spread), Passes: g.Passes, AllEqual: g.AllEqual,
		AgeSeconds: number(g.AgeSeconds), Staleness: g.Staleness, Dropped: text(g.Dropped)}, err
}

func (r groupRow) group() (experiment.Group, error) {
	var m groupMembers
	if err := json.Unmarshal([]byte(r.Members), &m); err != nil {
		return experiment.Group{}, err
	}
	g := experiment.Group{RunID: r.RunID, Attempt: r.Attempt, Step: r.Step, Draw: r.Draw, Task: r.Task, Sample: r.Sample, Size: r.Size,
		Members: m.Members, Letters: m.Letters, Mean: fromNumber(r.Mean), Spread: fromNumber(r.Spread), Passes: r.Passes,
		AllEqual: r.AllEqual, AgeSeconds: fromNumber(r.AgeSeconds), Staleness: r.Staleness, Dropped: r.Dropped}
	for _, p := range m.Rewards {
		v := math.NaN()
		if p != nil {
			v = *p
		}
		g.Rewards = append(g.Rewards, v)
	}
	return g, nil
}

// insertGroups writes groups in batches. One that is already stored stays as it is.
func insertGroups(tx *gorm.DB, l experiment.Lease, list []experiment.Group) error {
	if len(list) == 0 {
		return nil
	}
	rows := make([]groupRow, len(list))
	for i, g := range list {
		var err error
		if rows[i], err = groupToRow(l, g); err != nil {
			return err
		}
	}
	return tx.Clauses(clause.OnConflict{DoNothing: true}).CreateInBatches(&rows, 200).Error
}

var groupSort = map[string]string{"step": "step", "spread": "spread", "mean": "mean", "age": "age_seconds", "passes": "passes"}

// Groups lists prompt groups. The default order is "-step". Numbers that are not known come last. Attempts that a
// resume left behind are not in the list.
func (s *Store) Groups(ctx context.Context, f GroupFilter) ([]experiment.Group, int64, error) {
	offset, limit, err := page(f.Offset, f.Limit)
	if err != nil {
		return nil, 0, err
	}
	if f.Sort == "" {
		f.Sort = "-step"
	}
	key, desc := strings.CutPrefix(f.Sort, "-")
	column, ok := groupSort[key]
	if !ok {
		return nil, 0, errs.Field("sort", "%q is not one of step, spread, mean, age, passes, with - in front for descending", f.Sort)
	}
	dir := "ASC"
	if desc {
		dir = "DESC"
	}
	match := func() *gorm.DB {
		q := s.read(ctx).Model(&groupRow{}).Where("run_id = ? AND superseded = ?", f.RunID, false)
		if f.Step >= 0 {
			q = q.Where("step = ?", f.Step)
		}
		if f.Task != "" {
			q = q.Where("task = ?", text(f.Task))
		}
		return q
	}
	var total int64
	if err := match().Count(&total).Error; err != nil {
		return nil, 0, fail("groups", err)
	}
	order := column + " " + dir + " NULLS LAST, step DESC, draw DESC"
	if column == "step" {
		order = "step " + dir + ", draw " + dir
	}
	var rows []groupRow
	if err := match().Order(order).Offset(offset).Limit(limit).Find(&rows).Error; err != nil {
		return nil, 0, fail("groups", err)
	}
	out := make([]experiment.Group, len(rows))
	for i, r := range rows {
		if out[i], err = r.group(); err != nil {
			return nil, 0, fail("groups", err)
		}
	}
	return out, total, nil
}
