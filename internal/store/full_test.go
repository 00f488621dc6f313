package store

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/metric"
	"agentrl/internal/trajectory"
)

// TestDiskFull lets the database run out of pages in the middle of commits: every commit is there as a whole or not at
// all, and the error is internal.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := Open(ctx, Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	leases, err := s.benchRuns(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	var pages int
	if err := s.w.Raw("PRAGMA page_count").Scan(&pages).Error; err != nil {
		t.Fatal(err)
	}
	if err := s.w.Raw(fmt.Sprintf("PRAGMA max_page_count = %d", pages+200)).Scan(&pages).Error; err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	done := int64(0)
	for step := int64(1); ; step++ {
		tr := benchTrajectory(leases[0], int(step))
		for i := range tr.Tokens {
			tr.Tokens[i] = rng.Int32()
		}
		err := s.CommitStep(ctx, leases[0], experiment.StepCommit{Points: []metric.Point{{Metric: "m", Step: step, Value: float64(step)}},
			Trajectories: []*trajectory.Trajectory{tr}, Progress: experiment.Progress{Step: step}})
		if err != nil {
			if errs.CodeOf(err) != errs.Internal || !strings.Contains(err.Error(), "full") {
				t.Fatal(err)
			}
			break
		}
		if done = step; step > 1000 {
			t.Fatal("never full")
		}
	}
	if done == 0 {
		t.Fatal("full before the first commit")
	}
	sum, err := s.Summaries(ctx, leases[0].RunID)
	if err != nil || sum[0].LastStep != done || sum[0].N != done {
		t.Fatalf("%+v %v, want %d", sum, err, done)
	}
	list, n, err := s.Trajectories(ctx, TrajectoryFilter{RunID: leases[0].RunID, Step: -1, Draw: -1, Limit: 1})
	if err != nil || n != done {
		t.Fatalf("%d trajectories, %v", n, err)
	}
	if _, err := s.Trajectory(ctx, list[0].ID); err != nil {
		t.Fatal(err)
	}
	if r, err := s.Run(ctx, leases[0].RunID); err != nil || r.Progress.Step != done {
		t.Fatalf("%+v %v", r, err)
	}
}

// TestQueryCost counts what a chart reads: about four cells per pixel, however long the series.
func TestQueryCost(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := Open(ctx, Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	leases, err := s.benchRuns(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	const n, px = 150_000, 100
	for part := range chunked(benchCurve(1, n), 5000) {
		if err := s.CommitStep(ctx, leases[0], experiment.StepCommit{Points: part}); err != nil {
			t.Fatal(err)
		}
	}
	var row seriesRow
	if err := s.r.Where("metric = ?", "loss").Take(&row).Error; err != nil {
		t.Fatal(err)
	}
	lv, err := row.levels()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]int64{{0, n}, {12_345, 139_001}, {70_001, 70_100}, {70_001, 90_000}} {
		rows, cells := 0, 0
		r := metric.NewReader(lv, func(level int, from, to int64) ([][]byte, error) {
			var list []chunkRow
			err := s.r.Where("series_id = ? AND level = ? AND idx >= ? AND idx < ?", row.ID, level, from, to).Order("idx").Find(&list).Error
			var out [][]byte
			for _, k := range list {
				out = append(out, k.Data)
			}
			rows += len(list)
			return out, err
		})
		list, err := buckets([]piece{{1, r, c[0], c[1]}}, 0, px)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Range(list.Level, c[0], c[1])
		if err != nil {
			t.Fatal(err)
		}
		if cells = len(got); cells > 4*px+2*7*list.Level || rows > 4*px/metric.RowCells+2*(list.Level+2) || len(list.Buckets) > px {
			t.Errorf("%v: %d rows, %d cells, %d buckets at level %d", c, rows, cells, len(list.Buckets), list.Level)
		}
	}
}

func TestManyRuns(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s, err := Open(ctx, Options{Dir: t.TempDir(), Clock: func() time.Time { return time.Unix(1e9, 0) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	// Every sort order walks an index instead of sorting all runs.
	for name, by := range runSort {
		var plan []struct{ Detail string }
		q := "EXPLAIN QUERY PLAN SELECT runs.*, experiments.name AS experiment FROM runs JOIN experiments ON experiments.id = runs.experiment_id ORDER BY runs." +
			by.column + " DESC, runs.id DESC LIMIT 51"
		if err := s.r.WithContext(ctx).Raw(q).Scan(&plan).Error; err != nil {
			t.Fatal(err)
		}
		for _, p := range plan {
			if strings.Contains(p.Detail, "TEMP B-TREE") {
				t.Errorf("order by %s: %s", name, p.Detail)
			}
		}
	}
}

func FuzzDecodeTokens(f *testing.F) {
	f.Add([]byte{1, 1, 1, 0, 5, 0, 0, 0, 0, 0, 128, 191})
	f.Add([]byte{1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, lp, tr, err := decodeTokens(b)
		if err == nil && 4*(len(tok)+len(lp)+len(tr)) > len(b) {
			t.Fatalf("%d values from %d bytes", len(tok)+len(lp)+len(tr), len(b))
		}
	})
}

func FuzzRunCursor(f *testing.F) {
	f.Add("-id", "eyJzIjoiLWlkIiwidiI6NCwiaSI6NH0")
	f.Add("name", "eyJzIjoibmFtZSIsInYiOjQsImkiOjR9")
	f.Fuzz(func(t *testing.T, sort, cursor string) {
		_, _, err := readCursor(RunFilter{Sort: sort, Cursor: cursor})
		if err != nil && errs.CodeOf(err) != errs.Invalid {
			t.Fatal(err)
		}
	})
}
