package store

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"agentrl/internal/experiment"
	"agentrl/internal/metric"
)

// The size of the chart of dashboard.md 10, goal 2.
const (
	benchSeries = 10
	benchPoints = 100_000
	benchPx     = 1200
)

// BenchCharts measures, in a new SQLite database below dir, what a chart of 10 series of 100,000 points costs: ingest,
// query, zoom and the size of the answer. The baseline of the queries reads every point and puts it into the same
// buckets. It fails if a minimum or maximum of the answer differs from the baseline's.
func BenchCharts(ctx context.Context, dir string) ([]metric.Figure, error) {
	s, err := Open(ctx, Options{URL: filepath.Join(dir, "bench-charts.db")})
	if err != nil {
		return nil, err
	}
	figures, err := s.benchCharts(ctx)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return figures, err
}

func (s *Store) benchCharts(ctx context.Context) ([]metric.Figure, error) {
	leases, err := s.benchRuns(ctx, benchSeries)
	if err != nil {
		return nil, err
	}
	all := make([][]metric.Point, len(leases))
	runs := make([]int64, len(leases))
	begin := time.Now()
	for i, l := range leases {
		all[i] = benchCurve(uint64(i), benchPoints)
		runs[i] = l.RunID
		for part := range chunked(all[i], 1000) {
			if err := s.CommitStep(ctx, l, experiment.StepCommit{Points: part}); err != nil {
				return nil, err
			}
		}
	}
	rate := benchSeries * benchPoints / time.Since(begin).Seconds()
	px := metric.BucketsPerSeries(benchPx, benchSeries)
	whole := metric.Query{Runs: runs, Metric: "loss", X: metric.ByStep, From: math.NaN(), To: math.NaN(), Px: px}
	zoom := whole
	zoom.From, zoom.To = 31_000, 36_500

	out := []metric.Figure{{Name: "charts/ingest", Value: rate, Unit: "points/s"}}
	for _, c := range []struct {
		name string
		q    metric.Query
	}{{"charts/query", whole}, {"charts/zoom", zoom}} {
		var answer []metric.Series
		fast, err := p95(20, func() (err error) { answer, err = s.Series(ctx, c.q); return err })
		if err != nil {
			return nil, err
		}
		var plain [][]metric.Bucket
		slow, err := p95(3, func() (err error) { plain, err = s.everyPoint(ctx, c.q); return err })
		if err != nil {
			return nil, err
		}
		for i := range answer {
			if err := sameExtremes(answer[i].Buckets, plain[i], all[i]); err != nil {
				return nil, fmt.Errorf("%s, series %d: %w", c.name, i, err)
			}
		}
		out = append(out, metric.Figure{Name: c.name + "/p95", Value: fast.Seconds() * 1e3, Unit: "ms", Baseline: "read every point", Ratio: slow.Seconds() / fast.Seconds()})
		b, err := json.Marshal(answer)
		if err != nil {
			return nil, err
		}
		compact, err := json.Marshal(metric.Compact(answer))
		if err != nil {
			return nil, err
		}
		full, short := zipped(b), zipped(compact)
		out = append(out, metric.Figure{Name: c.name + "/answer", Value: float64(short) / 1e3, Unit: "kB gzip", Baseline: "bucket objects", Ratio: float64(full) / float64(short)})
	}
	return out, nil
}

// benchRuns makes runs that are held, ready for commits.
func (s *Store) benchRuns(ctx context.Context, n int) ([]experiment.Lease, error) {
	e, err := s.CreateExperiment(ctx, experiment.Experiment{Name: "bench"})
	if err != nil {
		return nil, err
	}
	var out []experiment.Lease
	for i := range n {
		r, err := s.CreateRun(ctx, experiment.Run{ExperimentID: e.ID, Name: fmt.Sprintf("series %d", i)})
		if err != nil {
			return nil, err
		}
		_, l, err := s.Acquire(ctx, r.ID, experiment.Worker{ID: "bench"}, s.clock(), time.Hour)
		if err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// benchCurve is a falling loss with noise and rare spikes, with full 64 bit values.
func benchCurve(seed uint64, n int) []metric.Point {
	rng := rand.New(rand.NewPCG(seed, 3))
	at := time.Unix(1_700_000_000, 0)
	out := make([]metric.Point, n)
	for i := range out {
		at = at.Add(time.Duration(1500+rng.IntN(500)) * time.Millisecond)
		v := 2*math.Exp(-float64(i)/20_000) + 0.2*rng.NormFloat64()
		if rng.IntN(5000) == 0 {
			v += 10
		}
		out[i] = metric.Point{Metric: "loss", Step: int64(i), Time: at, Tokens: int64(i) * 4096, Samples: int64(i) * 64, Value: v}
	}
	return out
}

// everyPoint answers a query without levels: it reads all points and merges them.
func (s *Store) everyPoint(ctx context.Context, q metric.Query) ([][]metric.Bucket, error) {
	axis, _ := q.X.Index()
	db := s.read(ctx)
	out := make([][]metric.Bucket, len(q.Runs))
	for i, run := range q.Runs {
		var row seriesRow
		if err := db.Where("run_id = ? AND metric = ?", run, q.Metric).Take(&row).Error; err != nil {
			return nil, fail("bench", err)
		}
		r, err := row.reader(db)
		if err != nil {
			return nil, err
		}
		cells, err := r.Range(0, 0, r.N())
		if err != nil {
			return nil, err
		}
		var list []metric.Bucket
		for _, c := range cells {
			if b := c.Bucket(axis); !(b.X0 < q.From) && !(b.X0 > q.To) {
				list = append(list, b)
			}
		}
		out[i] = metric.Bin(list, q.Px)
	}
	return out, nil
}

// sameExtremes checks every bucket of an answer against the points themselves, and the whole against the baseline.
func sameExtremes(answer, plain []metric.Bucket, points []metric.Point) error {
	var a, p metric.Bucket
	for _, b := range plain {
		p.Add(b)
	}
	i := int(answer[0].X0)
	for _, b := range answer {
		a.Add(b)
		lo, hi := math.Inf(1), math.Inf(-1)
		for range b.Count {
			lo, hi = min(lo, points[i].Value), max(hi, points[i].Value)
			i++
		}
		if b.Min != lo || b.Max != hi {
			return fmt.Errorf("bucket at %g has [%g, %g] instead of [%g, %g]", b.X0, b.Min, b.Max, lo, hi)
		}
	}
	if a.Count != p.Count || a.Min != p.Min || a.Max != p.Max {
		return fmt.Errorf("%d points in [%g, %g] instead of %d in [%g, %g]", a.Count, a.Min, a.Max, p.Count, p.Min, p.Max)
	}
	return nil
}

// p95 runs fn n times and returns the time that 95 of 100 runs stay under.
func p95(n int, fn func() error) (time.Duration, error) {
	times := make([]time.Duration, n)
	for i := range times {
		begin := time.Now()
		if err := fn(); err != nil {
			return 0, err
		}
		times[i] = time.Since(begin)
	}
	slices.Sort(times)
	return times[(n*95+99)/100-1], nil
}

func zipped(b []byte) int {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write(b); err != nil {
		return math.MaxInt
	}
	if err := w.Close(); err != nil {
		return math.MaxInt
	}
	return buf.Len()
}
