package native

import (
	"math"
	"testing"

	"agentrl/internal/nn"
)

// The figures are those of compute.md 9 for the sizes it lists.
func TestBudgetParts(t *testing.T) {
	t.Parallel()
	part := func(b Budget, i int) float64 { return float64(b.Parts[i].Bytes) / 1e6 }
	for _, tt := range []struct {
		name                  string
		trainer, published    float64 // MB
		live, liveSequenceLen float64
	}{
		{"nano", 14, 2 * 3 * 4 * 0.89, 170, 1024},
		{"micro", 70, 2 * 3 * 4 * 4.35, 400, 1024},
		{"mini", 367, 2 * 3 * 4 * 22.95, 1100, 1024},
	} {
		c, err := nn.Preset(tt.name, 0)
		if err != nil {
			t.Fatal(err)
		}
		c.Context = int(tt.liveSequenceLen)
		opt := Options{Versions: 3, MaxBatch: 64, MicroBatchTokens: 4096, MemoryLimit: 1}.withDefaults()
		b := newBudget(c, &opt)
		for what, pair := range map[string][2]float64{
			"trainer":   {part(b, 0), tt.trainer},
			"published": {part(b, 3) + part(b, 4), tt.published},
			"live":      {part(b, 7), tt.live},
		} {
			if math.Abs(pair[0]-pair[1]) > 0.05*pair[1] {
				t.Errorf("%s %s: %.1f MB, want %.1f", tt.name, what, pair[0], pair[1])
			}
		}
		if opt.CacheBytes <= 0 || b.Total() < b.Parts[0].Bytes || b.check() == nil {
			t.Errorf("%s: cache %d, total %d", tt.name, opt.CacheBytes, b.Total())
		}
	}
}

func TestBudgetHoldsWhatIsAllocated(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	publish(t, e, 0)
	v, err := e.published(0)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := v.weights.Bytes(), e.budget.Parts[4].Bytes/int64(e.opt.Versions); float64(got) > 1.15*float64(want)+float64(4*e.Config().Vocab*e.Config().Dim) {
		t.Errorf("a published version takes %d bytes, the budget says %d", got, want)
	}
}
