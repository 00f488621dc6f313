package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"gorm.io/gorm"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

// runSort maps what a list may be sorted by to its column and to the value of a row, each with an index (column, id).
var runSort = map[string]struct {
	column string
	value  func(runRow) any
}{
	"id":      {"id", func(r runRow) any { return r.ID }},
	"name":    {"name", func(r runRow) any { return r.Name }},
	"state":   {"state", func(r runRow) any { return r.State }},
	"step":    {"step", func(r runRow) any { return r.P.Step }},
	"reward":  {"reward_mean", func(r runRow) any { return r.P.RewardMean }},
	"pass":    {"pass_rate", func(r runRow) any { return r.P.PassRate }},
	"eval":    {"eval_pass", func(r runRow) any { return r.P.EvalPass }},
	"created": {"created_at", func(r runRow) any { return r.CreatedAt }},
	"updated": {"updated_at", func(r runRow) any { return r.UpdatedAt }},
}

// runCursor is the position after the last run of a page: its sort value, then its id.
type runCursor struct {
	Sort  string          `json:"s"`
	Value json.RawMessage `json:"v"`
	ID    int64           `json:"i"`
}

// ListRuns returns one page of runs. The default order is "-id". Invalid: unknown sort, bad limit, or a cursor that is
// damaged or belongs to another order.
func (s *Store) ListRuns(ctx context.Context, f RunFilter) (RunPage, error) {
	_, limit, err := page(0, f.Limit)
	if err != nil {
		return RunPage{}, err
	}
	if f.Sort == "" {
		f.Sort = "-id"
	}
	key, desc := strings.CutPrefix(f.Sort, "-")
	by, ok := runSort[key]
	if !ok {
		return RunPage{}, errs.Field("sort", "%q is not one of id, name, state, step, reward, pass, eval, created, updated, with - in front for descending", f.Sort)
	}
	match := func(state string) *gorm.DB { return filterRuns(s.read(ctx).Table("runs"), f, state) }
	var out RunPage
	if err := match("runs.state").Count(&out.Total).Error; err != nil {
		return RunPage{}, fail("list runs", err)
	}
	dir, cmp := "ASC", ">"
	if desc {
		dir, cmp = "DESC", "<"
	}
	state := "runs.state"
	if !s.pg {
		state = "+runs.state" // SQLite would rather use this column's index and sort all that match
	}
	q := match(state).Select("runs.*, experiments.name AS experiment").Joins("JOIN experiments ON experiments.id = runs.experiment_id")
	if f.Cursor != "" {
		value, id, err := readCursor(f)
		if err != nil {
			return RunPage{}, err
		}
		q = q.Where("(runs."+by.column+", runs.id) "+cmp+" (?, ?)", value, id)
	}
	var rows []runRow
	if err := q.Order("runs." + by.column + " " + dir + ", runs.id " + dir).Limit(limit + 1).Find(&rows).Error; err != nil {
		return RunPage{}, fail("list runs", err)
	}
	if len(rows) > limit {
		rows = rows[:limit]
		last := rows[limit-1]
		v, err := json.Marshal(by.value(last))
		if err != nil {
			return RunPage{}, fail("list runs", err)
		}
		b, err := json.Marshal(runCursor{Sort: f.Sort, Value: v, ID: last.ID})
		if err != nil {
			return RunPage{}, fail("list runs", err)
		}
		out.Next = base64.RawURLEncoding.EncodeToString(b)
	}
	out.Runs = make([]experiment.Run, len(rows))
	for i, r := range rows {
		out.Runs[i] = r.run()
	}
	return out, nil
}

// filterRuns applies the filter; state is how to write the state column.
func filterRuns(q *gorm.DB, f RunFilter, state string) *gorm.DB {
	if f.ExperimentID != 0 {
		q = q.Where("runs.experiment_id = ?", f.ExperimentID)
	}
	if len(f.States) > 0 {
		states := make([]string, len(f.States))
		for i, st := range f.States {
			states[i] = string(st)
		}
		q = q.Where(state+" IN ?", states)
	}
	if needle := strings.TrimSpace(f.Search); needle != "" {
		p := likePattern(needle)
		id, err := strconv.ParseInt(strings.TrimPrefix(needle, "#"), 10, 64)
		if err != nil {
			id = -1
		}
		q = q.Where(`(LOWER(runs.name) LIKE ? ESCAPE '\' OR runs.id = ? OR runs.experiment_id IN (SELECT id FROM experiments WHERE LOWER(name) LIKE ? ESCAPE '\'))`, p, id, p)
	}
	return q
}

// readCursor returns the sort value, in the type of its column, and the id of a cursor.
func readCursor(f RunFilter) (any, int64, error) {
	bad := errs.Field("cursor", "this cursor is damaged or belongs to another order; start from the first page")
	b, err := base64.RawURLEncoding.DecodeString(f.Cursor)
	if err != nil {
		return nil, 0, bad
	}
	var c runCursor
	if json.Unmarshal(b, &c) != nil || c.Sort != f.Sort {
		return nil, 0, bad
	}
	switch strings.TrimPrefix(f.Sort, "-") {
	case "name", "state":
		var v string
		err = json.Unmarshal(c.Value, &v)
		return text(v), c.ID, orBad(err, bad)
	case "reward", "pass", "eval":
		var v float64
		err = json.Unmarshal(c.Value, &v)
		return v, c.ID, orBad(err, bad)
	default:
		var v int64
		err = json.Unmarshal(c.Value, &v)
		return v, c.ID, orBad(err, bad)
	}
}

func orBad(err error, bad *errs.Error) error {
	if err != nil {
		return bad
	}
	return nil
}
