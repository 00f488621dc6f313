package metric

import "math"

// NewSummary returns the summary of a metric without points.
func NewSummary(run int64, name string) Summary {
	nan := math.NaN()
	return Summary{RunID: run, Metric: name, Last: nan, Min: nan, Max: nan}
}

// AddCell merges later samples into the summary. N counts all samples, NaN those that are not numbers; Last, Min and Max
// are over the others. Samples at or before LastStep are in it already, or do not count, and must not be given.
func (s *Summary) AddCell(c Cell) {
	if s.N == 0 {
		s.FirstStep = c.Lo[xStep]
	}
	s.LastStep = c.Hi[xStep]
	s.N += c.Count + c.NaN
	s.NaN += c.NaN
	if c.Count == 0 {
		return
	}
	if s.N == s.NaN+c.Count { // the first numbers
		s.Min, s.Max = c.Min, c.Max
	}
	s.Min, s.Max, s.Last = math.Min(s.Min, c.Min), math.Max(s.Max, c.Max), c.Last
}
