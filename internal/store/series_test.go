package store_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/metric"
)

func seriesTests() []conformance {
	return []conformance{{"series", testSeries}, {"series property", testSeriesProperty}, {"series of resumes", testSeriesResume}, {"series refusals", testSeriesRefusals}}
}

// logged is a point with the attempt that logged it, for computing answers the slow way.
type logged struct {
	attempt int
	metric.Point
}

// slow is the definition: which points count and which are left behind.
func slow(all []logged, starts map[int]int64) (win []metric.Point, tails map[int][]metric.Point) {
	tails = map[int][]metric.Point{}
	last := int64(math.MinInt64)
	for _, p := range all {
		counts := p.Step > last
		for a, s := range starts {
			if a > p.attempt && p.Step > s {
				counts = false
			}
		}
		if counts {
			win, last = append(win, p.Point), p.Step
		} else {
			tails[p.attempt] = append(tails[p.attempt], p.Point)
		}
	}
	return win, tails
}

func xOf(p metric.Point, a metric.Axis) float64 {
	switch a {
	case metric.ByTime:
		return float64(p.Time.UnixMicro()) / 1e6
	case metric.ByTokens:
		return float64(p.Tokens)
	case metric.BySamples:
		return float64(p.Samples)
	}
	return float64(p.Step)
}

// same compares buckets with the points they must hold, point by point in order.
func same(got []metric.Bucket, want []metric.Point, axis metric.Axis, from, to float64, px int) error {
	var in []metric.Point
	for _, p := range want {
		if x := xOf(p, axis); !(x < from) && !(x > to) {
			in = append(in, p)
		}
	}
	if len(got) > px {
		return fmt.Errorf("%d buckets in %d pixels", len(got), px)
	}
	if len(in) <= px && len(got) != len(in) {
		return fmt.Errorf("%d points in %d buckets though %d pixels hold them", len(in), len(got), px)
	}
	i := 0
	for k, b := range got {
		var w metric.Bucket
		size := 1.0
		for n := b.Count + b.NaN; n > 0; n-- {
			if i == len(in) {
				return fmt.Errorf("bucket %d counts more points than there are", k)
			}
			if v := math.Abs(in[i].Value); !math.IsNaN(v) {
				size += v
			}
			w.Add(metric.CellOf(metric.SampleOf(in[i])).Bucket(0))
			if w.X1 = xOf(in[i], axis); w.Count+w.NaN == 1 {
				w.X0 = w.X1
			}
			i++
		}
		if b.Count+b.NaN == 0 || math.Abs(b.Sum-w.Sum) > 1e-12*size {
			return fmt.Errorf("bucket %d: %+v, want %+v", k, b, w)
		}
		if w.Sum = b.Sum; fmt.Sprint(b) != fmt.Sprint(w) {
			return fmt.Errorf("bucket %d: %+v, want %+v", k, b, w)
		}
	}
	if i != len(in) {
		return fmt.Errorf("buckets hold %d of %d points", i, len(in))
	}
	return nil
}

func testSeries(t *testing.T, f fixture) {
	ctx := t.Context()
	r := f.newRun(t, "r")
	l := f.acquire(t, r.ID, "w")
	inf := math.Inf(1)
	for i, v := range []float64{3, math.NaN(), -1, inf, 2} {
		must(t, f.CommitStep(ctx, l, experiment.StepCommit{Points: []metric.Point{{Metric: "m", Step: int64(i), Time: start.Add(time.Duration(i) * time.Second), Value: v}}}))
	}
	q := metric.Query{Runs: []int64{r.ID}, Metric: "m", X: metric.ByStep, From: math.NaN(), To: math.NaN(), Px: 10}
	s := got(f.Series(ctx, q))(t)
	if len(s) != 1 || !s[0].Exact || s[0].Level != 0 || s[0].Faint || len(s[0].Buckets) != 5 || s[0].Buckets[1].NaN != 1 || s[0].Buckets[3].Max != inf {
		t.Fatalf("%+v", s)
	}
	q.Px = 1
	s = got(f.Series(ctx, q))(t)
	if b := s[0].Buckets; len(b) != 1 || s[0].Exact || b[0].Min != -1 || b[0].Max != inf || b[0].First != 3 || b[0].Last != 2 || b[0].Count != 4 || b[0].NaN != 1 {
		t.Fatalf("%+v", s)
	}
	q.Metric = "other"
	if s = got(f.Series(ctx, q))(t); len(s) != 1 || s[0].Buckets == nil || len(s[0].Buckets) != 0 || s[0].RunID != r.ID {
		t.Fatalf("%+v", s)
	}
}

func testSeriesRefusals(t *testing.T, f fixture) {
	ok := metric.Query{Runs: []int64{1}, Metric: "m", X: metric.ByStep, From: math.NaN(), To: math.NaN(), Px: 100}
	for name, change := range map[string]func(*metric.Query){
		"axis": func(q *metric.Query) { q.X = "epoch" }, "px": func(q *metric.Query) { q.Px = -1 }, "many px": func(q *metric.Query) { q.Px = 10001 },
		"range": func(q *metric.Query) { q.From, q.To = 2, 1 }, "no runs": func(q *metric.Query) { q.Runs = nil },
		"many runs": func(q *metric.Query) { q.Runs = make([]int64, 201) },
	} {
		q := ok
		change(&q)
		if _, err := f.Series(t.Context(), q); errs.CodeOf(err) != errs.Invalid || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func testSeriesResume(t *testing.T, f fixture) {
	ctx := t.Context()
	r := f.newRun(t, "r")
	log := func(l experiment.Lease, name string, from, to int64, v float64) {
		t.Helper()
		var p []metric.Point
		for s := from; s <= to; s++ {
			p = append(p, metric.Point{Metric: name, Step: s, Value: v})
		}
		must(t, f.CommitStep(ctx, l, experiment.StepCommit{Points: p}))
	}
	a1 := f.attempt(t, r.ID, 0, 0)
	log(a1, "warmup/loss", 1, 30, 1)
	a2 := f.attempt(t, r.ID, 20, 0) // resumes in the warm start
	log(a2, "warmup/loss", 21, 40, 2)
	log(a2, "reward", 0, 10, 2) // step 0 is the validation before the first update
	a3 := f.attempt(t, r.ID, 40, 5)
	log(a3, "reward", 5, 8, 3) // repeats step 5
	q := metric.Query{Runs: []int64{r.ID}, Metric: "warmup/loss", X: metric.ByStep, From: math.NaN(), To: math.NaN(), Px: 100}
	s := got(f.Series(ctx, q))(t)
	if len(s) != 2 || len(s[0].Buckets) != 40 || s[0].Buckets[19].First != 1 || s[0].Buckets[20].First != 2 || !s[1].Faint || s[1].Attempt != 1 || len(s[1].Buckets) != 10 {
		t.Fatalf("%+v", s)
	}
	q.Metric = "reward"
	s = got(f.Series(ctx, q))(t)
	if len(s) != 3 || len(s[0].Buckets) != 9 || s[0].Buckets[5].First != 2 || s[0].Buckets[6].First != 3 || s[1].Attempt != 2 || len(s[1].Buckets) != 5 ||
		s[2].Attempt != 3 || len(s[2].Buckets) != 1 || s[2].Buckets[0].X0 != 5 {
		t.Fatalf("%+v", s)
	}
	sum := got(f.Summaries(ctx, r.ID))(t)
	if len(sum) != 2 || sum[0].Metric != "reward" || sum[0].N != 9 || sum[0].Min != 2 || sum[0].Max != 3 || sum[0].Last != 3 || sum[0].LastStep != 8 || sum[1].N != 40 {
		t.Fatalf("%+v", sum)
	}
}

// testSeriesProperty compares random histories with resumes against the definition, on every axis, in random ranges.
func testSeriesProperty(t *testing.T, f fixture) {
	ctx := t.Context()
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := f.newRun(t, fmt.Sprint("p", seed))
		name := []string{"loss", "warmup/loss"}[seed%2]
		var all []logged
		starts := map[int]int64{}
		last := int64(0)
		for attempt := 1; attempt <= 1+rng.IntN(4); attempt++ {
			from := int64(0)
			if attempt > 1 {
				from = rng.Int64N(last + 1)
			}
			warm, rl := int64(0), from
			if strings.HasPrefix(name, "warmup/") {
				warm, rl = from, 0
			}
			l := f.attempt(t, r.ID, warm, rl)
			starts[attempt] = from
			n := []int{3, 700, 1500, 5000}[rng.IntN(4)]
			step, at, tokens := from, int64(attempt)*1e9, from*10
			if attempt > 1 && rng.IntN(2) == 0 {
				step-- // the validation of the resumed step comes again
			}
			var batch []metric.Point
			for i := range n {
				step += 1 + rng.Int64N(3)*rng.Int64N(2)
				at += rng.Int64N(2e6)
				tokens += rng.Int64N(1000)
				v := rng.NormFloat64()
				switch rng.IntN(50) {
				case 0:
					v = math.NaN()
				case 1:
					v = 1e300 * float64(rng.IntN(3)-1)
				}
				batch = append(batch, metric.Point{Metric: name, Step: step, Time: start.Add(time.Duration(at) * time.Microsecond), Tokens: tokens, Samples: step / 2, Value: v})
				if len(batch) > rng.IntN(900) || i == n-1 {
					must(t, f.CommitStep(ctx, l, experiment.StepCommit{Points: batch}))
					for _, p := range batch {
						all = append(all, logged{attempt, p})
					}
					batch = nil
				}
			}
			last = step
		}
		win, tails := slow(all, starts)
		for range 12 {
			axis := []metric.Axis{metric.ByStep, metric.ByTime, metric.ByTokens, metric.BySamples}[rng.IntN(4)]
			q := metric.Query{Runs: []int64{r.ID}, Metric: name, X: axis, From: math.NaN(), To: math.NaN(), Px: 1 + rng.IntN(400)}
			if rng.IntN(3) > 0 {
				a, b := xOf(all[rng.IntN(len(all))].Point, axis), xOf(all[rng.IntN(len(all))].Point, axis)
				q.From, q.To = min(a, b), max(a, b)
			}
			s := got(f.Series(ctx, q))(t)
			if err := same(s[0].Buckets, win, axis, q.From, q.To, q.Px); err != nil {
				t.Fatalf("seed %d, %+v: %v", seed, q, err)
			}
			if s[0].Exact != metric.Exact(s[0].Buckets) {
				t.Fatal("exact flag")
			}
			for _, v := range s[1:] {
				if !v.Faint {
					t.Fatal("a tail that is not faint")
				}
				if err := same(v.Buckets, tails[v.Attempt], axis, q.From, q.To, q.Px); err != nil {
					t.Fatalf("seed %d, tail of %d, %+v: %v", seed, v.Attempt, q, err)
				}
			}
		}
		sum := got(f.Summaries(ctx, r.ID))(t)
		want := metric.NewSummary(r.ID, name)
		for _, p := range win {
			want.AddCell(metric.CellOf(metric.SampleOf(p)))
		}
		if len(sum) != 1 || fmt.Sprint(sum[0]) != fmt.Sprint(want) {
			t.Fatalf("seed %d: %+v, want %+v", seed, sum, want)
		}
	}
}
