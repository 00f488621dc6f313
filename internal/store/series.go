package store

import (
	"context"
	"math"

	"gorm.io/gorm"

	"agentrl/internal/errs"
	"agentrl/internal/metric"
)

// The bounds of a chart query.
const (
	defaultPx = 1200
	maxPx     = 10000
	maxSeries = 200 // runs in one query
)

// loadStarts reads where the attempts of runs began, of those that have.
func loadStarts(db *gorm.DB, runs []int64) (map[int64][]metric.Start, error) {
	var rows []attemptRow
	if err := db.Where("run_id IN ? AND begun = ?", runs, true).Order("run_id, number").Find(&rows).Error; err != nil {
		return nil, fail("attempts", err)
	}
	out := map[int64][]metric.Start{}
	for _, r := range rows {
		out[r.RunID] = append(out[r.RunID], metric.Start{Attempt: r.Number, Warmup: r.StartWarmup, Step: r.StartStep})
	}
	return out, nil
}

// piece is the stretch [from, to) of samples with which an attempt takes part in the winning lineage.
type piece struct {
	attempt  int
	reader   *metric.Reader
	from, to int64
}

// lineage finds the winning stretches of a metric's attempts, which are given in order. An attempt counts up to the
// smallest start of all later ones. Where an attempt logged a step again that an earlier one, which counts, has logged,
// the earlier point stays, so that no step is there twice.
func lineage(db *gorm.DB, rows []seriesRow, starts []metric.Start, name string) ([]piece, error) {
	out := make([]piece, 0, len(rows))
	last := int64(math.MinInt64)
	for _, row := range rows {
		r, err := row.reader(db)
		if err != nil {
			return nil, err
		}
		p := piece{attempt: row.Attempt, reader: r, to: r.N()}
		if limit := metric.LastCounting(starts, row.Attempt, name); limit < row.LastStep {
			if p.to, err = r.Search(0, func(x float64) bool { return x > float64(limit) }); err != nil {
				return nil, err
			}
		}
		if last > math.MinInt64 {
			if p.from, err = r.Search(0, func(x float64) bool { return x > float64(last) }); err != nil {
				return nil, err
			}
		}
		p.from = min(p.from, p.to)
		if p.from < p.to {
			c, err := r.Range(0, p.to-1, p.to)
			if err != nil {
				return nil, err
			}
			last = c[0].Hi[0]
		}
		out = append(out, p)
	}
	return out, nil
}

// Series answers a chart query: for each run, in the order asked for, its winning lineage in at most Px buckets, without
// any if it has no points, and after it the faint tails of attempts that a resume left behind. Seq is left to whoever
// knows the live topic. Invalid: unknown axis, crossed or absurd bounds.
func (s *Store) Series(ctx context.Context, q metric.Query) ([]metric.Series, error) {
	axis, ok := q.X.Index()
	if !ok {
		return nil, errs.Field("x", "%q is not one of step, time, tokens, samples", q.X)
	}
	if q.Px == 0 {
		q.Px = defaultPx
	}
	if q.Px < 1 || q.Px > maxPx {
		return nil, errs.Field("px", "%d is not between 1 and %d", q.Px, maxPx)
	}
	if q.From > q.To {
		return nil, errs.Field("from", "%g is beyond to %g", q.From, q.To)
	}
	if len(q.Runs) == 0 || len(q.Runs) > maxSeries {
		return nil, errs.Field("runs", "%d runs asked for; allowed are 1 to %d", len(q.Runs), maxSeries)
	}
	db := s.read(ctx)
	starts, err := loadStarts(db, q.Runs)
	if err != nil {
		return nil, err
	}
	var rows []seriesRow
	if err := db.Where("run_id IN ? AND metric = ?", q.Runs, q.Metric).Order("run_id, attempt").Find(&rows).Error; err != nil {
		return nil, fail("series", err)
	}
	byRun := map[int64][]seriesRow{}
	for _, r := range rows {
		byRun[r.RunID] = append(byRun[r.RunID], r)
	}
	out := make([]metric.Series, 0, len(q.Runs))
	for _, run := range q.Runs {
		pieces, err := lineage(db, byRun[run], starts[run], q.Metric)
		if err != nil {
			return nil, fail("series", err)
		}
		list, err := draw(run, q, axis, pieces)
		if err != nil {
			return nil, fail("series", err)
		}
		out = append(out, list...)
	}
	return out, nil
}

// draw turns the pieces of one run into its series.
func draw(run int64, q metric.Query, axis int, pieces []piece) ([]metric.Series, error) {
	var win []piece
	var tails [][]piece
	for _, p := range pieces {
		a, b, err := bounds(p.reader, axis, q.From, q.To)
		if err != nil {
			return nil, err
		}
		clip := func(from, to int64) []piece {
			if from, to = max(from, a), min(to, b); from >= to {
				return nil
			}
			return []piece{{p.attempt, p.reader, from, to}}
		}
		win = append(win, clip(p.from, p.to)...)
		if tail := append(clip(0, p.from), clip(p.to, p.reader.N())...); len(tail) > 0 {
			tails = append(tails, tail)
		}
	}
	first, err := buckets(win, axis, q.Px)
	if err != nil {
		return nil, err
	}
	first.RunID, first.Metric = run, q.Metric
	out := []metric.Series{first}
	for _, t := range tails {
		v, err := buckets(t, axis, q.Px)
		if err != nil {
			return nil, err
		}
		v.RunID, v.Metric, v.Attempt, v.Faint = run, q.Metric, t[0].attempt, true
		out = append(out, v)
	}
	return out, nil
}

// bounds returns the samples [a, b) whose x lies in [from, to]; NaN leaves a side open.
func bounds(r *metric.Reader, axis int, from, to float64) (a, b int64, err error) {
	b = r.N()
	if !math.IsNaN(from) && !math.IsInf(from, -1) {
		if a, err = r.Search(axis, func(x float64) bool { return x >= from }); err != nil {
			return 0, 0, err
		}
	}
	if !math.IsNaN(to) && !math.IsInf(to, 1) {
		if b, err = r.Search(axis, func(x float64) bool { return x > to }); err != nil {
			return 0, 0, err
		}
	}
	return a, max(a, b), nil
}

// buckets reads the pieces, one after the other, at the level that their length asks for.
func buckets(list []piece, axis, px int) (metric.Series, error) {
	n := int64(0)
	for _, p := range list {
		n += p.to - p.from
	}
	v := metric.Series{Level: metric.LevelFor(n, px), Buckets: []metric.Bucket{}}
	for _, p := range list {
		cells, err := p.reader.Range(v.Level, p.from, p.to)
		if err != nil {
			return v, err
		}
		for _, c := range cells {
			v.Buckets = append(v.Buckets, c.Bucket(axis))
		}
	}
	v.Buckets = metric.Bin(v.Buckets, px)
	v.Exact = metric.Exact(v.Buckets)
	return v, nil
}
