package store_test

import (
	"testing"

	"agentrl/internal/store"
)

func BenchmarkCharts(b *testing.B) {
	figures, err := store.BenchCharts(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range figures {
		b.Logf("%s %.1f %s (%s: %.2f)", f.Name, f.Value, f.Unit, f.Baseline, f.Ratio)
	}
}

func BenchmarkTrajectories(b *testing.B) {
	figures, err := store.BenchTrajectories(b.Context(), b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range figures {
		b.Logf("%s %.1f %s (%s: %.2f)", f.Name, f.Value, f.Unit, f.Baseline, f.Ratio)
	}
}
