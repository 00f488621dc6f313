package metric_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"agentrl/internal/metric"
)

// stored is a series kept the way the store keeps it.
type stored struct {
	rows map[[2]int64][]byte
	lv   *metric.Levels
	all  []metric.Sample
}

// grow logs n samples, writing the growing end out and reading it back at random moments.
func grow(t *testing.T, rng *rand.Rand, n int) *stored {
	t.Helper()
	s := &stored{rows: map[[2]int64][]byte{}, lv: &metric.Levels{}}
	var x [4]int64
	for range n {
		for i := range x {
			x[i] += 1 + rng.Int64N(5)
		}
		v := metric.Sample{X: x, Value: rng.NormFloat64()}
		if rng.IntN(20) == 0 {
			v.Value = math.NaN()
		}
		s.all = append(s.all, v)
		s.lv.Append(v)
		for _, r := range s.lv.TakeRows() {
			key := [2]int64{int64(r.Level), r.Index}
			if _, ok := s.rows[key]; ok {
				t.Fatalf("row %v written twice", key)
			}
			s.rows[key] = r.Data
		}
		if rng.IntN(300) == 0 {
			lv, err := metric.DecodeLevels(s.lv.N, s.lv.Last, metric.EncodeSamples(s.lv.Tail), s.lv.EncodeOpen())
			if err != nil {
				t.Fatal(err)
			}
			s.lv = lv
		}
	}
	return s
}

func (s *stored) reader() *metric.Reader {
	return metric.NewReader(s.lv, func(level int, from, to int64) ([][]byte, error) {
		var out [][]byte
		for i := from; i < to; i++ {
			b, ok := s.rows[[2]int64{int64(level), i}]
			if !ok {
				return nil, fmt.Errorf("row %d of level %d was never written", i, level)
			}
			out = append(out, b)
		}
		return out, nil
	})
}

func TestLevelsAgainstBruteForce(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 7, 8, 9, 63, 64, 511, 512, 513, 4095, 4096, 4097, 40_000} {
		rng := rand.New(rand.NewPCG(uint64(n), 1))
		s := grow(t, rng, n)
		r := s.reader()
		for range 40 {
			a, b := rng.IntN(n+1), rng.IntN(n+1)
			a, b = min(a, b), max(a, b)
			level := rng.IntN(7)
			cells, err := r.Range(level, int64(a), int64(b))
			if err != nil {
				t.Fatal(err)
			}
			i := a
			for _, c := range cells {
				var w metric.Cell
				for k := c.Count + c.NaN; k > 0; k-- {
					w.Add(metric.CellOf(s.all[i]))
					i++
				}
				if math.Abs(w.Sum-c.Sum) > 1e-9 {
					t.Fatalf("sum %g, want %g", c.Sum, w.Sum)
				}
				if w.Sum = c.Sum; w != c {
					t.Fatalf("n %d, [%d, %d) at level %d: %+v, want %+v", n, a, b, level, c, w)
				}
			}
			if i != b {
				t.Fatalf("n %d: cells end at %d instead of %d", n, i, b)
			}
			size := 1
			for range level {
				size *= 8
			}
			if most := (b-a)/size + 14*level + 1; len(cells) > most {
				t.Fatalf("%d cells for [%d, %d) at level %d, at most %d expected", len(cells), a, b, level, most)
			}
			axis, x := rng.IntN(4), rng.Float64()*float64(4*n)
			got, err := r.Search(axis, func(v float64) bool { return v >= x })
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			scale := 1.0
			if axis == 1 {
				scale = 1e6
			}
			for want < n && float64(s.all[want].X[axis])/scale < x {
				want++
			}
			if got != int64(want) {
				t.Fatalf("n %d: first x >= %g on axis %d is %d, want %d", n, x, axis, got, want)
			}
		}
	}
}

func TestAxesNeverFall(t *testing.T) {
	t.Parallel()
	lv := &metric.Levels{}
	lv.Append(metric.Sample{X: [4]int64{1, 100, 50, 5}})
	lv.Append(metric.Sample{X: [4]int64{2, 90, 60, 4}})
	if lv.Last.X != [4]int64{2, 100, 60, 5} {
		t.Fatalf("%v", lv.Last.X)
	}
}

func TestBin(t *testing.T) {
	t.Parallel()
	mk := func(xs ...float64) (out []metric.Bucket) {
		for i, x := range xs {
			out = append(out, metric.Bucket{X0: x, X1: x, First: float64(i), Min: float64(i), Max: float64(i), Last: float64(i), Sum: float64(i), Count: 1})
		}
		return out
	}
	for _, c := range []struct {
		name string
		in   []metric.Bucket
		px   int
		want []int64
	}{
		{"fits", mk(1, 2, 9), 3, []int64{1, 1, 1}},
		{"by x", mk(0, 1, 2, 10), 2, []int64{3, 1}},
		{"gap", mk(0, 1, 8, 9, 10), 4, []int64{2, 3}},
		{"one x", mk(5, 5, 5), 2, []int64{3}},
		{"x falls", mk(0, 9, 0, 9, 0, 9), 3, []int64{2, 2, 2}},
		{"none", nil, 3, nil},
	} {
		got := metric.Bin(c.in, c.px)
		var counts []int64
		for _, b := range got {
			counts = append(counts, b.Count)
		}
		if fmt.Sprint(counts) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", c.name, counts, c.want)
		}
	}
	if n := metric.BucketsPerSeries(1200, 10); n != 480 {
		t.Errorf("%d buckets", n)
	}
	if n := metric.BucketsPerSeries(1200, 0); n != 1200 {
		t.Errorf("%d buckets", n)
	}
	if metric.LevelFor(400, 100) != 0 || metric.LevelFor(401, 100) != 1 || metric.LevelFor(100_000, 1200) != 2 {
		t.Error("levels")
	}
}

func TestLastCounting(t *testing.T) {
	t.Parallel()
	starts := []metric.Start{{Attempt: 1}, {Attempt: 2, Warmup: 40, Step: 20}, {Attempt: 4, Warmup: 40, Step: 10}}
	for _, c := range []struct {
		attempt int
		name    string
		want    int64
	}{{1, "loss", 10}, {2, "loss", 10}, {3, "loss", 10}, {4, "loss", math.MaxInt64}, {1, "warmup/loss", 40}} {
		if got := metric.LastCounting(starts, c.attempt, c.name); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

func FuzzDecodeSamples(f *testing.F) {
	f.Add(metric.EncodeSamples([]metric.Sample{{X: [4]int64{1, 2, 3, 4}, Value: 5}, {X: [4]int64{2, 2, 9, 4}, Value: math.Inf(-1)}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if list, err := metric.DecodeSamples(b); err == nil {
			again, err := metric.DecodeSamples(metric.EncodeSamples(list))
			if err != nil || fmt.Sprint(again) != fmt.Sprint(list) {
				t.Fatalf("%v %v", again, list)
			}
		}
	})
}

func FuzzDecodeCells(f *testing.F) {
	f.Add(metric.EncodeCells([]metric.Cell{metric.CellOf(metric.Sample{X: [4]int64{1, 2, 3, 4}, Value: 5}), {NaN: 3}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if list, err := metric.DecodeCells(b); err == nil {
			if again, err := metric.DecodeCells(metric.EncodeCells(list)); err != nil || len(again) != len(list) {
				t.Fatalf("%v %v", again, err)
			}
		}
	})
}

func FuzzDecodeLevels(f *testing.F) {
	lv := &metric.Levels{}
	for i := range int64(70) {
		lv.Append(metric.Sample{X: [4]int64{i, i, i, i}, Value: float64(i)})
	}
	f.Add(int64(70), metric.EncodeSamples(lv.Tail), lv.EncodeOpen())
	f.Add(int64(-1), []byte{}, []byte{200})
	f.Fuzz(func(t *testing.T, n int64, tail, open []byte) {
		lv, err := metric.DecodeLevels(n, metric.Sample{}, tail, open)
		if err == nil && n%metric.RowSamples != int64(len(lv.Tail)) {
			t.Fatal("an inconsistent end was accepted")
		}
	})
}

func TestEncodingSize(t *testing.T) {
	t.Parallel()
	s := grow(t, rand.New(rand.NewPCG(1, 1)), 1024)
	b := metric.EncodeSamples(s.all)
	if len(b) > 18*len(s.all) {
		t.Errorf("%d bytes per sample", len(b)/len(s.all))
	}
	back, err := metric.DecodeSamples(b)
	if err != nil || !bytes.Equal(metric.EncodeSamples(back), b) {
		t.Fatal("not the same after reading back", err)
	}
	if _, err := metric.DecodeSamples(b[:len(b)-1]); err == nil {
		t.Fatal("a cut series was accepted")
	}
}
