package metric

import (
	"encoding/json"
	"math"
	"strconv"
)

// MarshalJSON writes the fields in their order. Numbers that JSON does not know, and the values of a bucket without any,
// are null.
func (b Bucket) MarshalJSON() ([]byte, error) {
	out := make([]byte, 0, 160)
	field := func(name string, v float64, known bool) {
		out = append(out, name...)
		out = appendNumber(out, v, known)
	}
	has := b.Count > 0
	field(`{"x0":`, b.X0, true)
	field(`,"x1":`, b.X1, true)
	field(`,"first":`, b.First, has)
	field(`,"min":`, b.Min, has)
	field(`,"max":`, b.Max, has)
	field(`,"last":`, b.Last, has)
	field(`,"sum":`, b.Sum, true)
	out = append(out, `,"count":`...)
	out = strconv.AppendInt(out, b.Count, 10)
	out = append(out, `,"nan":`...)
	out = strconv.AppendInt(out, b.NaN, 10)
	return append(out, '}'), nil
}

// MarshalJSON writes the fields in their order, null for numbers that JSON does not know.
func (s Summary) MarshalJSON() ([]byte, error) {
	out := append(make([]byte, 0, 160), `{"run":`...)
	out = strconv.AppendInt(out, s.RunID, 10)
	out = append(out, `,"metric":`...)
	out = appendString(out, s.Metric)
	out = append(out, `,"n":`...)
	out = strconv.AppendInt(out, s.N, 10)
	for _, f := range []struct {
		name string
		v    float64
	}{{`,"last":`, s.Last}, {`,"min":`, s.Min}, {`,"max":`, s.Max}} {
		out = append(out, f.name...)
		out = appendNumber(out, f.v, true)
	}
	for _, f := range []struct {
		name string
		v    int64
	}{{`,"first_step":`, s.FirstStep}, {`,"last_step":`, s.LastStep}, {`,"nan":`, s.NaN}} {
		out = append(out, f.name...)
		out = strconv.AppendInt(out, f.v, 10)
	}
	return append(out, '}'), nil
}

func appendNumber(b []byte, v float64, known bool) []byte {
	if !known || math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	format := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, v, format, -1, 64)
}

func appendString(b []byte, s string) []byte {
	q, err := json.Marshal(s)
	if err != nil { // strings always marshal
		return append(b, `""`...)
	}
	return append(b, q...)
}
