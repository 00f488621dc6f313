package metric

import (
	"math"
	"strconv"
)

// CompactSeries is a series for the wire: columns instead of bucket objects. Min and Max are exact. First, Last and Mean
// are rounded to a ten-thousandth of the series' extent, which is finer than any screen; they are left out where a
// bucket holds a single value, which then is its minimum. The JSON fields are those of Series, with "buckets" replaced by x0, x1, min, max,
// mean, count, nan, and first and last.
type CompactSeries struct{ Series }

// Compact wraps an answer so that it is written in columns. A chart of 10 series fits into 150 kB of gzip that way.
func Compact(list []Series) []CompactSeries {
	out := make([]CompactSeries, len(list))
	for i, s := range list {
		out[i] = CompactSeries{s}
	}
	return out
}

// MarshalJSON writes one array per column, all of the same length. x1 holds the distance from x0; null stands for a
// number that JSON does not know, or for one that equals min because the bucket holds a single value.
func (c CompactSeries) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 64*len(c.Buckets)+256), `{"run":`...)
	b = strconv.AppendInt(b, c.RunID, 10)
	b = append(append(b, `,"metric":`...), appendString(nil, c.Metric)...)
	b = append(b, `,"attempt":`...)
	b = strconv.AppendInt(b, int64(c.Attempt), 10)
	b = append(b, `,"faint":`...)
	b = strconv.AppendBool(b, c.Faint)
	b = append(b, `,"level":`...)
	b = strconv.AppendInt(b, int64(c.Level), 10)
	b = append(b, `,"exact":`...)
	b = strconv.AppendBool(b, c.Exact)
	b = append(b, `,"seq":`...)
	b = strconv.AppendInt(b, c.Seq, 10)
	round := rounding(c.Buckets)
	column := func(name string, value func(Bucket) (float64, bool), exact bool) {
		b = append(append(append(b, ',', '"'), name...), '"', ':', '[')
		for i, k := range c.Buckets {
			if i > 0 {
				b = append(b, ',')
			}
			v, known := value(k)
			if exact || !known || math.IsNaN(v) || math.IsInf(v, 0) {
				b = appendNumber(b, v, known)
			} else {
				b = round(b, v)
			}
		}
		b = append(b, ']')
	}
	column("x0", func(k Bucket) (float64, bool) { return k.X0, true }, true)
	column("x1", func(k Bucket) (float64, bool) { return k.X1 - k.X0, true }, true)
	column("min", func(k Bucket) (float64, bool) { return k.Min, k.Count > 0 }, true)
	column("max", func(k Bucket) (float64, bool) { return k.Max, k.Count > 1 }, true)
	column("mean", func(k Bucket) (float64, bool) { return k.Sum / float64(k.Count), k.Count > 1 }, false)
	column("first", func(k Bucket) (float64, bool) { return k.First, k.Count > 1 }, false)
	column("last", func(k Bucket) (float64, bool) { return k.Last, k.Count > 1 }, false)
	column("count", func(k Bucket) (float64, bool) { return float64(k.Count), true }, true)
	column("nan", func(k Bucket) (float64, bool) { return float64(k.NaN), true }, true)
	return append(b, '}'), nil
}

// rounding returns how to write values that need to be right only to a ten-thousandth of the buckets' extent.
func rounding(list []Bucket) func([]byte, float64) []byte {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, k := range list {
		if k.Count > 0 {
			lo, hi = math.Min(lo, k.Min), math.Max(hi, k.Max)
		}
	}
	extent := hi - lo
	if !(extent > 1e-12) || !(extent < 1e12) {
		return func(b []byte, v float64) []byte { return appendNumber(b, v, true) }
	}
	places := max(0, int(math.Ceil(4-math.Log10(extent))))
	return func(b []byte, v float64) []byte { return strconv.AppendFloat(b, v, 'f', places, 64) }
}
