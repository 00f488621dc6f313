package metric

import (
	"fmt"
	"sort"
)

// Fetch returns the stored rows [from, to) of a level, in order.
type Fetch func(level int, from, to int64) ([][]byte, error)

// Reader reads stretches of a stored series at any level. It is not safe for concurrent use.
type Reader struct {
	levels *Levels
	fetch  Fetch
	cache  map[[2]int64][]Cell // rows met on the way to a boundary
}

// NewReader returns a reader of the series whose growing end is l.
func NewReader(l *Levels, fetch Fetch) *Reader {
	return &Reader{levels: l, fetch: fetch, cache: map[[2]int64][]Cell{}}
}

// N returns the number of samples.
func (r *Reader) N() int64 { return r.levels.N }

// count returns how many whole cells a level has.
func (r *Reader) count(level int) int64 {
	n := r.levels.N
	for range level {
		n /= Factor
	}
	return n
}

func rowSize(level int) int64 {
	if level == 0 {
		return RowSamples
	}
	return RowCells
}

// cells returns the cells [a, b) of a level.
func (r *Reader) cells(level int, a, b int64) ([]Cell, error) {
	if a >= b {
		return nil, nil
	}
	size := rowSize(level)
	full := r.count(level) / size // rows that are stored
	out := make([]Cell, 0, b-a)
	first, last := a/size, (b-1)/size
	if stop := min(last+1, full); first < stop {
		rows, err := r.rows(level, first, stop)
		if err != nil {
			return nil, err
		}
		for i, row := range rows {
			base := (first + int64(i)) * size
			out = append(out, row[max(0, a-base):min(size, b-base)]...)
		}
	}
	if last >= full {
		base := full * size
		from, to := max(0, a-base), b-base
		if level == 0 {
			if to > int64(len(r.levels.Tail)) {
				return nil, errShort
			}
			for _, s := range r.levels.Tail[from:to] {
				out = append(out, CellOf(s))
			}
		} else {
			if level > len(r.levels.Open) || to > int64(len(r.levels.Open[level-1])) {
				return nil, errShort
			}
			out = append(out, r.levels.Open[level-1][from:to]...)
		}
	}
	return out, nil
}

// rows returns whole stored rows as cells; single rows are kept, because the ways to both boundaries share them.
func (r *Reader) rows(level int, from, to int64) ([][]Cell, error) {
	key := [2]int64{int64(level), from}
	if to == from+1 {
		if c, ok := r.cache[key]; ok {
			return [][]Cell{c}, nil
		}
	}
	data, err := r.fetch(level, from, to)
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != to-from {
		return nil, fmt.Errorf("level %d: %d rows instead of %d", level, len(data), to-from)
	}
	out := make([][]Cell, len(data))
	for i, b := range data {
		if out[i], err = decodeRow(level, b); err != nil {
			return nil, fmt.Errorf("level %d, row %d: %w", level, from+int64(i), err)
		}
	}
	if len(out) == 1 {
		r.cache[key] = out[0]
	}
	return out, nil
}

func decodeRow(level int, b []byte) ([]Cell, error) {
	var cells []Cell
	if level == 0 {
		list, err := DecodeSamples(b)
		if err != nil {
			return nil, err
		}
		cells = make([]Cell, len(list))
		for i, s := range list {
			cells[i] = CellOf(s)
		}
	} else {
		var err error
		if cells, err = DecodeCells(b); err != nil {
			return nil, err
		}
	}
	if int64(len(cells)) != rowSize(level) {
		return nil, fmt.Errorf("%d cells in a row of %d", len(cells), rowSize(level))
	}
	return cells, nil
}

// Search returns the ordinal of the first sample whose x on the axis satisfies reached, or N. reached must stay true
// once it is. It reads about one row per level.
func (r *Reader) Search(axis int, reached func(x float64) bool) (int64, error) {
	top := 0
	for r.count(top+1) > 0 {
		top++
	}
	a, b := int64(0), r.count(top)
	for level := top; ; level-- {
		i, err := r.searchLevel(level, a, b, axis, reached)
		if err != nil || level == 0 {
			return i, err
		}
		a, b = i*Factor, (i+1)*Factor
		if n := r.count(level - 1); i == r.count(level) { // not in a whole cell: in what follows the last one
			b = n
		}
	}
}

// searchLevel returns the first of the cells [a, b) whose end is reached, or b.
func (r *Reader) searchLevel(level int, a, b int64, axis int, reached func(float64) bool) (int64, error) {
	cells, err := r.cells(level, a, b)
	if err != nil {
		return 0, err
	}
	i := sort.Search(len(cells), func(i int) bool { return reached(xValue(axis, cells[i].Hi[axis])) })
	return a + int64(i), nil
}

// Range returns the samples [a, b) as cells of the given level, with finer ones only where the level's cells do not fit:
// at most 7 per level and side.
func (r *Reader) Range(level int, a, b int64) ([]Cell, error) {
	var out []Cell
	for _, p := range cover(level, a, b, r.levels.N) {
		c, err := r.cells(p.level, p.from, p.to)
		if err != nil {
			return nil, err
		}
		out = append(out, c...)
	}
	return out, nil
}

// part is a stretch of cells of one level.
type part struct {
	level    int
	from, to int64
}

// cover splits the samples [a, b) of a series of n into whole cells of at most the given level, in order.
func cover(level int, a, b, n int64) []part {
	b = min(b, n)
	if a >= b {
		return nil
	}
	var left, right []part
	for l := 0; ; l++ {
		// a and b count cells of level l here.
		if l == level {
			left = append(left, part{l, a, b})
			break
		}
		up, down := (a+Factor-1)/Factor, b/Factor
		if up >= down { // no whole coarser cell between
			left = append(left, part{l, a, b})
			break
		}
		if a < up*Factor {
			left = append(left, part{l, a, up * Factor})
		}
		if down*Factor < b {
			right = append(right, part{l, down * Factor, b})
		}
		a, b = up, down
	}
	for i := len(right) - 1; i >= 0; i-- {
		left = append(left, right[i])
	}
	return left
}

// LevelFor returns the finest level at which n samples are at most 4 cells per pixel.
func LevelFor(n int64, px int) int {
	level := 0
	for n > 4*int64(px) {
		n /= Factor
		level++
	}
	return level
}
