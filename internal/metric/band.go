package metric

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/stat"
)

// Curve is one member of a group: values at growing x.
type Curve struct {
	X []float64
	V []float64
}

// BandKind says what the band around the mean is.
type BandKind string

// The kinds of dashboard.md 5.
const (
	BandStd    BandKind = "std"    // mean ± sample standard deviation (n-1)
	BandSEM    BandKind = "sem"    // mean ± standard error
	BandCI     BandKind = "ci"     // 95 % percentile bootstrap of the mean
	BandMinMax BandKind = "minmax" // extremes
)

// BandPoint is the group at one x. N members have a value there; Of is the size of the group. Std is the sample standard
// deviation. With one member Std, and the width of every band, is 0.
type BandPoint struct {
	X    float64 `json:"x"`
	N    int     `json:"n"`
	Of   int     `json:"of"`
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Band aligns curves on equal x, never interpolating: at each x the members that have a value there are counted and
// averaged, the others are left out. Values that are not numbers are missing. seed is for BandCI.
func Band(group []Curve, kind BandKind, seed uint64) []BandPoint {
	at := map[float64][]float64{}
	for _, c := range group {
		for i, x := range c.X {
			if !math.IsNaN(c.V[i]) {
				at[x] = append(at[x], c.V[i])
			}
		}
	}
	out := make([]BandPoint, 0, len(at))
	for x, v := range at {
		out = append(out, bandPoint(x, v, len(group), kind, seed))
	}
	sort.Slice(out, func(i, j int) bool { return out[i].X < out[j].X })
	return out
}

func bandPoint(x float64, v []float64, of int, kind BandKind, seed uint64) BandPoint {
	p := BandPoint{X: x, N: len(v), Of: of}
	if p.N == 1 {
		p.Mean, p.Low, p.High = v[0], v[0], v[0]
		return p
	}
	p.Mean, p.Std = stat.MeanStdDev(v, nil)
	switch kind {
	case BandSEM:
		e := p.Std / math.Sqrt(float64(p.N))
		p.Low, p.High = p.Mean-e, p.Mean+e
	case BandCI:
		p.Low, p.High = BootstrapMean(v, seed)
	case BandMinMax:
		p.Low, p.High = v[0], v[0]
		for _, y := range v {
			p.Low, p.High = math.Min(p.Low, y), math.Max(p.High, y)
		}
	default:
		p.Low, p.High = p.Mean-p.Std, p.Mean+p.Std
	}
	return p
}

// MeanStd returns the mean and the sample standard deviation (n-1), which is 0 for one value and NaN for none.
func MeanStd(v []float64) (mean, std float64) {
	if len(v) == 1 {
		return v[0], 0
	}
	return stat.MeanStdDev(v, nil)
}
