package metric

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Positions of the axes in Sample.X and Cell.
const (
	xStep = iota
	xTime
	xTokens
	xSamples
	axes
)

// Index returns the position of the axis in Sample.X; false for an unknown axis.
func (a Axis) Index() (int, bool) {
	switch a {
	case ByStep:
		return xStep, true
	case ByTime:
		return xTime, true
	case ByTokens:
		return xTokens, true
	case BySamples:
		return xSamples, true
	}
	return 0, false
}

// Sample is a point as it is stored: step, time in microseconds since the Unix epoch, tokens, samples; none of them
// ever falls within a series.
type Sample struct {
	X     [axes]int64
	Value float64
}

// SampleOf converts a logged point.
func SampleOf(p Point) Sample {
	t := int64(0)
	if !p.Time.IsZero() {
		t = p.Time.UnixMicro()
	}
	return Sample{X: [axes]int64{p.Step, t, p.Tokens, p.Samples}, Value: p.Value}
}

// Step returns the step.
func (s Sample) Step() int64 { return s.X[xStep] }

// after returns s with every axis but the step held at least at the earlier sample's: a clock that was set back, or a
// counter that restarted, must not make a line run backwards.
func (s Sample) after(prev Sample) Sample {
	for i := xTime; i < axes; i++ {
		s.X[i] = max(s.X[i], prev.X[i])
	}
	return s
}

// EncodeSamples writes samples one after the other: the first sample's axes as varints, then differences to the sample
// before, each followed by the 8 bytes of the value. About 14 to 18 bytes per sample.
func EncodeSamples(list []Sample) []byte {
	b := make([]byte, 0, 18*len(list))
	var prev Sample
	for _, s := range list {
		for i := range s.X {
			b = binary.AppendVarint(b, s.X[i]-prev.X[i])
		}
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.Value))
		prev = s
	}
	return b
}

// DecodeSamples reads what EncodeSamples wrote.
func DecodeSamples(b []byte) ([]Sample, error) {
	out := make([]Sample, 0, len(b)/14+1)
	var prev Sample
	for len(b) > 0 {
		s := prev
		var err error
		for i := range s.X {
			var d int64
			if d, b, err = varint(b); err != nil {
				return nil, fmt.Errorf("sample %d: %w", len(out), err)
			}
			s.X[i] += d
		}
		if len(b) < 8 {
			return nil, fmt.Errorf("sample %d: %w", len(out), errShort)
		}
		s.Value = math.Float64frombits(binary.LittleEndian.Uint64(b))
		b = b[8:]
		out = append(out, s)
		prev = s
	}
	return out, nil
}

var errShort = errors.New("the stored series is cut off")

func varint(b []byte) (int64, []byte, error) {
	v, n := binary.Varint(b)
	if n <= 0 {
		return 0, nil, errShort
	}
	return v, b[n:], nil
}
