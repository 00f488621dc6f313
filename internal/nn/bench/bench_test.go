package bench

import (
	"context"
	"fmt"
	"testing"

	"agentrl/internal/metric"
)

func report(b *testing.B, f func() ([]metric.Figure, error)) {
	b.Helper()
	for range b.N {
		figures, err := f()
		if err != nil {
			b.Fatal(err)
		}
		for _, x := range figures {
			fmt.Printf("%-60s %10.1f %s", x.Name, x.Value, x.Unit)
			if x.Baseline != "" {
				fmt.Printf(", %.2f of %s", x.Ratio, x.Baseline)
			}
			fmt.Println() // b.Log would cut the list after ten lines
		}
	}
}

func BenchmarkGEMM(b *testing.B) {
	report(b, func() ([]metric.Figure, error) { return GEMM(context.Background()) })
}

func BenchmarkTrain(b *testing.B) {
	for _, p := range []string{"pico", "nano", "micro"} {
		b.Run(p, func(b *testing.B) {
			report(b, func() ([]metric.Figure, error) { return Train(context.Background(), p, TrainOptions{}) })
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, p := range []string{"pico", "nano"} {
		for _, n := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("%s/%d", p, n), func(b *testing.B) {
				report(b, func() ([]metric.Figure, error) { return Decode(context.Background(), p, n, 0) })
			})
		}
	}
}

func TestFiguresAreMeasured(t *testing.T) {
	t.Parallel()
	d, err := Decode(context.Background(), "pico", 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := Train(context.Background(), "pico", TrainOptions{Length: 32, Tokens: 64, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(d, tr...) {
		if f.Name == "" || f.Unit == "" || !(f.Value > 0) {
			t.Errorf("figure %+v", f)
		}
	}
	if _, err := Train(context.Background(), "giant", TrainOptions{}); err == nil {
		t.Error("an unknown size must be refused")
	}
}
