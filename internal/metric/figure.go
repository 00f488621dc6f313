package metric

// Figure is one measured number of a benchmark, and its ratio to a named baseline that was measured in the same run.
// Baseline and Ratio are empty when there is nothing to compare with.
type Figure struct {
	Name     string  `json:"name"`
	Value    float64 `json:"value"`
	Unit     string  `json:"unit"`
	Baseline string  `json:"baseline,omitempty"`
	Ratio    float64 `json:"ratio,omitempty"`
}
