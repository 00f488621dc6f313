package metric

import (
	"encoding/binary"
	"fmt"
)

// The geometry of a stored series. Level 0 is the samples, in rows of RowSamples. Level L >= 1 is cells of Factor^L
// samples, in rows of RowCells. Rows are written once, when they are full; what is still open lies in Tail and Open.
const (
	Factor     = 8
	RowSamples = 512
	RowCells   = 64
)

// Row is a full row to be stored.
type Row struct {
	Level int
	Index int64
	Data  []byte
}

// Levels is the growing end of a stored series of one attempt.
type Levels struct {
	N    int64    // samples so far
	Last Sample   // the newest
	Tail []Sample // the samples after the last full row of level 0
	Open [][]Cell // Open[L-1]: the cells of level L after its last full row
	Rows []Row    // full rows since the last call of TakeRows
}

// Append adds a sample whose step is above Last's. Time, tokens and samples are held at least at Last's.
func (l *Levels) Append(s Sample) {
	if l.N > 0 {
		s = s.after(l.Last)
	}
	l.Tail = append(l.Tail, s)
	l.Last = s
	l.N++
	if l.N%Factor == 0 {
		var c Cell
		for _, t := range l.Tail[len(l.Tail)-Factor:] {
			c.Add(CellOf(t))
		}
		l.push(1, l.N/Factor, c)
	}
	if len(l.Tail) == RowSamples {
		l.Rows = append(l.Rows, Row{Level: 0, Index: l.N/RowSamples - 1, Data: EncodeSamples(l.Tail)})
		l.Tail = l.Tail[:0]
	}
}

// push adds the count-th cell of a level.
func (l *Levels) push(level int, count int64, c Cell) {
	if len(l.Open) < level {
		l.Open = append(l.Open, nil)
	}
	open := append(l.Open[level-1], c)
	l.Open[level-1] = open
	if count%Factor == 0 {
		var up Cell
		for _, o := range open[len(open)-Factor:] {
			up.Add(o)
		}
		l.push(level+1, count/Factor, up)
	}
	if len(open) == RowCells {
		l.Rows = append(l.Rows, Row{Level: level, Index: count/RowCells - 1, Data: EncodeCells(open)})
		l.Open[level-1] = open[:0]
	}
}

// TakeRows returns the rows that became full since the last call.
func (l *Levels) TakeRows() []Row {
	r := l.Rows
	l.Rows = nil
	return r
}

// EncodeOpen writes Open: the number of levels, then each as a length and cells.
func (l *Levels) EncodeOpen() []byte {
	b := binary.AppendUvarint(nil, uint64(len(l.Open)))
	for _, cells := range l.Open {
		e := EncodeCells(cells)
		b = binary.AppendUvarint(b, uint64(len(e)))
		b = append(b, e...)
	}
	return b
}

// DecodeLevels restores the growing end from its stored parts.
func DecodeLevels(n int64, last Sample, tail, open []byte) (*Levels, error) {
	l := &Levels{N: n, Last: last}
	var err error
	if l.Tail, err = DecodeSamples(tail); err != nil {
		return nil, err
	}
	if int64(len(l.Tail)) != n%RowSamples {
		return nil, fmt.Errorf("a tail of %d samples in a series of %d", len(l.Tail), n)
	}
	if len(open) == 0 {
		return l, nil
	}
	levels, k := binary.Uvarint(open)
	if k <= 0 || levels > 32 {
		return nil, errShort
	}
	open = open[k:]
	size := n
	for range levels {
		m, k := binary.Uvarint(open)
		if k <= 0 || m > uint64(len(open)-k) {
			return nil, errShort
		}
		cells, err := DecodeCells(open[k : k+int(m)])
		if err != nil {
			return nil, err
		}
		if size /= Factor; int64(len(cells)) != size%RowCells {
			return nil, fmt.Errorf("%d open cells in a level of %d", len(cells), size)
		}
		l.Open = append(l.Open, cells)
		open = open[k+int(m):]
	}
	return l, nil
}
