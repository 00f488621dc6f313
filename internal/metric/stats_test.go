package metric_test

import (
	"encoding/json"
	"math"
	"testing"

	"agentrl/internal/metric"
)

func near(a, b float64) bool {
	return a == b || math.Abs(a-b) <= 1e-12*(1+math.Abs(b)) || (math.IsNaN(a) && math.IsNaN(b))
}

// Worked by hand: pass@2 of 1 success in 4 is 1 - C(3,2)/C(4,2) = 1 - 3/6; pass^2 of 3 in 4 is C(3,2)/C(4,2) = 3/6.
func TestPassK(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, c := range []struct {
		n, c, k  int
		any, all float64
	}{
		{4, 0, 1, 0, 0}, {4, 1, 1, 0.25, 0.25}, {4, 1, 2, 0.5, 0}, {4, 1, 4, 1, 0}, {4, 2, 2, 5.0 / 6, 1.0 / 6},
		{4, 3, 2, 1, 0.5}, {4, 4, 4, 1, 1}, {5, 2, 3, 0.9, 0}, {10, 3, 4, 1 - 35.0/210, 0}, {10, 7, 4, 1 - 0.0/210, 35.0 / 210},
		{3, 1, 4, nan, nan}, {3, 4, 1, nan, nan}, {3, -1, 1, nan, nan}, {3, 1, 0, nan, nan},
	} {
		if v := metric.PassAtK(c.n, c.c, c.k); !near(v, c.any) {
			t.Errorf("pass@%d of %d in %d: %g, want %g", c.k, c.c, c.n, v, c.any)
		}
		if v := metric.PassAllK(c.n, c.c, c.k); !near(v, c.all) {
			t.Errorf("pass^%d of %d in %d: %g, want %g", c.k, c.c, c.n, v, c.all)
		}
	}
	if v := metric.PassAtK(2000, 1, 1000); !near(v, 0.5) {
		t.Errorf("large n: %g", v)
	}
}

func TestPassCurve(t *testing.T) {
	t.Parallel()
	items := []metric.Item{{Task: "a", N: 4, C: 1}, {Task: "a", N: 4, C: 4}, {Task: "a", N: 2, C: 0}, {Task: "b", N: 4, C: 2}}
	p := metric.PassCurve(items, []int{1, 2, 4, 8}, false, 7)
	// k=1: task a (1/4 + 1 + 0)/3 = 5/12, task b 1/2, mean 11/24. k=2: a (1/2 + 1 + 0)/3 = 1/2, b 5/6, mean 2/3.
	// k=4: a (1 + 1)/2 = 1 with one item left out, b 1.
	want := []metric.PassPoint{{K: 1, Mean: 11.0 / 24, Items: 4, MinSamples: 2}, {K: 2, Mean: 2.0 / 3, Items: 4, MinSamples: 2}, {K: 4, Mean: 1, Items: 3, LeftOut: 1, MinSamples: 4}}
	if len(p) != len(want) {
		t.Fatalf("%+v", p)
	}
	for i, w := range want {
		g := p[i]
		if g.K != w.K || !near(g.Mean, w.Mean) || g.Items != w.Items || g.LeftOut != w.LeftOut || g.MinSamples != w.MinSamples || g.Low > g.Mean || g.High < g.Mean {
			t.Errorf("got %+v, want %+v", g, w)
		}
	}
	// Task b has one item, so only a's three items vary: k=1 lies between (0+1/2)/2 and (1+1/2)/2.
	if p[0].Low != 0.25 || p[0].High != 0.75 {
		t.Errorf("band [%g, %g]", p[0].Low, p[0].High)
	}
	if p[2].Low != 1 || p[2].High != 1 {
		t.Errorf("band of a certain result [%g, %g]", p[2].Low, p[2].High)
	}
	if q := metric.PassCurve(items, []int{1}, false, 7); q[0] != p[0] {
		t.Error("the same seed gives another band")
	}
	if q := metric.PassCurve(items, []int{2}, true, 7); !near(q[0].Mean, (1.0/3+1.0/6)/2) {
		t.Errorf("pass^2 %g", q[0].Mean)
	}
	// Two seeds that always and never pass: resampling seeds gives 0, 1/2 and 1.
	q := metric.PassCurve([]metric.Item{{Seed: 1, N: 1, C: 1}, {Seed: 2, N: 1, C: 0}}, []int{1}, false, 7)
	if q[0].Mean != 0.5 || q[0].Low != 0 || q[0].High != 1 {
		t.Errorf("over seeds: %+v", q[0])
	}
}

func TestBand(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	group := []metric.Curve{{X: []float64{1, 2, 3}, V: []float64{1, 5, 7}}, {X: []float64{1, 3}, V: []float64{3, nan}}, {X: []float64{1}, V: []float64{8}}}
	// At 1: 1, 3, 8: mean 4, variance (9+1+16)/2 = 13.
	std, sem := math.Sqrt(13), math.Sqrt(13.0/3)
	for kind, w := range map[metric.BandKind][2]float64{metric.BandStd: {4 - std, 4 + std}, metric.BandSEM: {4 - sem, 4 + sem}, metric.BandMinMax: {1, 8}} {
		b := metric.Band(group, kind, 1)
		if len(b) != 3 {
			t.Fatalf("%+v", b)
		}
		if p := b[0]; p.N != 3 || p.Of != 3 || !near(p.Mean, 4) || !near(p.Std, std) || !near(p.Low, w[0]) || !near(p.High, w[1]) {
			t.Errorf("%s: %+v", kind, p)
		}
		if p := b[1]; p != (metric.BandPoint{X: 2, N: 1, Of: 3, Mean: 5, Low: 5, High: 5}) {
			t.Errorf("%s: %+v", kind, p)
		}
		if p := b[2]; p.N != 1 || p.Mean != 7 {
			t.Errorf("a missing value counts: %+v", p)
		}
	}
	c := metric.Band(group, metric.BandCI, 1)[0]
	if c.Low < 1 || c.High > 8 || c.Low >= 4 || c.High <= 4 {
		t.Errorf("%+v", c)
	}
	if m, s := metric.MeanStd([]float64{2, 4, 4, 6}); m != 4 || !near(s, math.Sqrt(8.0/3)) {
		t.Errorf("%g %g", m, s)
	}
	if m, s := metric.MeanStd([]float64{2}); m != 2 || s != 0 {
		t.Errorf("%g %g", m, s)
	}
}

func TestBootstrap(t *testing.T) {
	t.Parallel()
	if lo, hi := metric.BootstrapMean([]float64{3, 3, 3}, 1); lo != 3 || hi != 3 {
		t.Errorf("[%g, %g]", lo, hi)
	}
	v := make([]float64, 400)
	for i := range v {
		v[i] = float64(i % 2)
	}
	lo, hi := metric.BootstrapMean(v, 1) // standard error 0.025
	if math.Abs(lo-(0.5-1.96*0.025)) > 0.01 || math.Abs(hi-(0.5+1.96*0.025)) > 0.01 {
		t.Errorf("[%g, %g]", lo, hi)
	}
	if m, lo, hi := metric.PairedDifference([]float64{1, 2, 3}, []float64{0.5, 1.5, 2.5}, 1); m != 0.5 || lo != 0.5 || hi != 0.5 {
		t.Errorf("%g [%g, %g]", m, lo, hi)
	}
	if m, _, _ := metric.PairedDifference([]float64{1}, nil, 1); !math.IsNaN(m) {
		t.Errorf("%g", m)
	}
}

func TestSmooth(t *testing.T) {
	t.Parallel()
	nan := math.NaN()
	for _, c := range []struct {
		name   string
		x, v   []float64
		weight float64
		want   []float64
	}{
		{"debiased", []float64{0, 1, 2}, []float64{4, 8, 0}, 0.5, []float64{4, 20.0 / 3, 20.0 / 7}},
		{"off", []float64{0, 1}, []float64{4, 8}, 0, []float64{4, 8}},
		{"gap", []float64{0, 1, 2}, []float64{4, nan, 4}, 0.9, []float64{4, nan, 4}},
		{"uneven", []float64{0, 1, 2, 4}, []float64{0, 0, 0, 1}, 0.5, []float64{0, 0, 0, 0.75 / (0.875*0.25 + 0.75)}},
	} {
		got := metric.Smooth(c.x, c.v, c.weight)
		for i := range c.want {
			if !near(got[i], c.want[i]) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		v    any
		want string
	}{
		{metric.Bucket{X0: 1, X1: 2.5, First: 0.1, Min: -inf, Max: 1e-9, Last: 1e21, Sum: nan, Count: 3, NaN: 1},
			`{"x0":1,"x1":2.5,"first":0.1,"min":null,"max":1e-09,"last":1e+21,"sum":null,"count":3,"nan":1}`},
		{metric.Bucket{X0: 1, X1: 1, NaN: 1}, `{"x0":1,"x1":1,"first":null,"min":null,"max":null,"last":null,"sum":0,"count":0,"nan":1}`},
		{metric.Summary{RunID: 3, Metric: `a"b`, N: 2, Last: nan, Min: 1, Max: inf, LastStep: 9, NaN: 1},
			`{"run":3,"metric":"a\"b","n":2,"last":null,"min":1,"max":null,"first_step":0,"last_step":9,"nan":1}`},
		{metric.Compact([]metric.Series{{RunID: 1, Metric: "m", Level: 2, Exact: true, Seq: 5, Buckets: []metric.Bucket{
			{X0: 1, X1: 1, First: 2.123456789, Min: 2.123456789, Max: 2.123456789, Last: 2.123456789, Sum: 2.123456789, Count: 1},
			{X0: 2, X1: 4, First: 1.00001, Min: 0.123456789, Max: 3, Last: 2, Sum: 3, Count: 2},
			{X0: 5, X1: 5, NaN: 1}}}})[0],
			`{"run":1,"metric":"m","attempt":0,"faint":false,"level":2,"exact":true,"seq":5,"x0":[1,2,5],"x1":[0,2,0],` +
				`"min":[2.123456789,0.123456789,null],"max":[null,3,null],"mean":[null,1.5000,null],"first":[null,1.0000,null],"last":[null,2.0000,null],"count":[1,2,0],"nan":[0,0,1]}`},
	} {
		b, err := json.Marshal(c.v)
		if err != nil || string(b) != c.want {
			t.Errorf("%v\ngot  %s\nwant %s", err, b, c.want)
		}
	}
	var back metric.Bucket
	if err := json.Unmarshal([]byte(`{"x0":1,"min":null,"max":2}`), &back); err != nil || back.Max != 2 {
		t.Errorf("%+v %v", back, err)
	}
}
