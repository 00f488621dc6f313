package metric

import (
	"math"
	"strings"
)

// Start says from which step an attempt went on. Warmup counts warm-start steps.
type Start struct {
	Attempt int
	Warmup  int64
	Step    int64
}

// For returns the step that matters for a metric: metrics that begin with "warmup/" count warm-start steps.
func (s Start) For(metric string) int64 {
	if strings.HasPrefix(metric, "warmup/") {
		return s.Warmup
	}
	return s.Step
}

// LastCounting returns the last step of an attempt that counts: the smallest start of all later attempts in starts,
// which lists those attempts that have begun, in any order.
func LastCounting(starts []Start, attempt int, metric string) int64 {
	limit := int64(math.MaxInt64)
	for _, s := range starts {
		if s.Attempt > attempt {
			limit = min(limit, s.For(metric))
		}
	}
	return limit
}
