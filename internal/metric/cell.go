package metric

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Cell is a stretch of consecutive samples of one series with its extent on every axis. A Bucket is a Cell seen along
// one axis.
type Cell struct {
	Lo, Hi                     [axes]int64
	First, Min, Max, Last, Sum float64
	Count, NaN                 int64
}

// CellOf returns the cell of one sample. A value that is not a number is counted in NaN only.
func CellOf(s Sample) Cell {
	c := Cell{Lo: s.X, Hi: s.X}
	if math.IsNaN(s.Value) {
		c.NaN = 1
		return c
	}
	v := s.Value
	c.First, c.Min, c.Max, c.Last, c.Sum, c.Count = v, v, v, v, v, 1
	return c
}

// Add merges a later cell into c.
func (c *Cell) Add(o Cell) {
	if c.Count+c.NaN == 0 {
		*c = o
		return
	}
	for i := range c.Lo {
		c.Lo[i] = min(c.Lo[i], o.Lo[i])
		c.Hi[i] = max(c.Hi[i], o.Hi[i])
	}
	if o.Count > 0 {
		if c.Count == 0 {
			c.First, c.Min, c.Max = o.First, o.Min, o.Max
		}
		c.Min, c.Max, c.Last = math.Min(c.Min, o.Min), math.Max(c.Max, o.Max), o.Last
	}
	c.Sum += o.Sum
	c.Count += o.Count
	c.NaN += o.NaN
}

// Bucket returns the cell along an axis. Time is in seconds.
func (c Cell) Bucket(axis int) Bucket {
	return Bucket{X0: xValue(axis, c.Lo[axis]), X1: xValue(axis, c.Hi[axis]), First: c.First, Min: c.Min, Max: c.Max, Last: c.Last,
		Sum: c.Sum, Count: c.Count, NaN: c.NaN}
}

func xValue(axis int, v int64) float64 {
	if axis == xTime {
		return float64(v) / 1e6
	}
	return float64(v)
}

// EncodeCells writes cells one after the other: per axis the distance of Lo from the end of the cell before and the
// length, as varints; five values of 8 bytes; two counts.
func EncodeCells(list []Cell) []byte {
	b := make([]byte, 0, 64*len(list))
	var prev [axes]int64
	for _, c := range list {
		for i := range c.Lo {
			b = binary.AppendVarint(b, c.Lo[i]-prev[i])
			b = binary.AppendVarint(b, c.Hi[i]-c.Lo[i])
		}
		for _, v := range [...]float64{c.First, c.Min, c.Max, c.Last, c.Sum} {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
		}
		b = binary.AppendVarint(b, c.Count)
		b = binary.AppendVarint(b, c.NaN)
		prev = c.Hi
	}
	return b
}

// DecodeCells reads what EncodeCells wrote.
func DecodeCells(b []byte) ([]Cell, error) {
	out := make([]Cell, 0, len(b)/50+1)
	var prev [axes]int64
	for len(b) > 0 {
		var c Cell
		var err error
		for i := range c.Lo {
			var lo, n int64
			if lo, b, err = varint(b); err == nil {
				n, b, err = varint(b)
			}
			if err != nil {
				return nil, fmt.Errorf("cell %d: %w", len(out), err)
			}
			c.Lo[i] = prev[i] + lo
			c.Hi[i] = c.Lo[i] + n
		}
		if len(b) < 40 {
			return nil, fmt.Errorf("cell %d: %w", len(out), errShort)
		}
		for i, p := range [...]*float64{&c.First, &c.Min, &c.Max, &c.Last, &c.Sum} {
			*p = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
		b = b[40:]
		if c.Count, b, err = varint(b); err == nil {
			c.NaN, b, err = varint(b)
		}
		if err != nil {
			return nil, fmt.Errorf("cell %d: %w", len(out), err)
		}
		out = append(out, c)
		prev = c.Hi
	}
	return out, nil
}
