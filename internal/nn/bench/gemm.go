package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"agentrl/internal/metric"
	"agentrl/internal/nn/kernel"
)

// GEMM compares the matrix product with single-threaded OpenBLAS where the program was built with the tag openblas, else
// with gonum; both run in turns. Figures ending in "packed" leave the packing of B out, as decoding does.
func GEMM(ctx context.Context) ([]metric.Figure, error) {
	kn, err := kernel.FromEnv()
	if err != nil {
		return nil, err
	}
	base, blas := baseline()
	var out []metric.Figure
	for _, s := range [][3]int{{1024, 1024, 1024}, {512, 512, 512}, {256, 256, 256}, {2048, 256, 256}, {4096, 128, 128},
		{32, 256, 256}, {32, 1024, 256}, {32, 128, 128}, {32, 896, 896}} {
		m, n, k := s[0], s[1], s[2]
		rng := rand.New(rand.NewPCG(1, 1))
		fill := func(n int) []float32 {
			x := make([]float32, n)
			for i := range x {
				x[i] = rng.Float32()
			}
			return x
		}
		a, b, c := fill(m*k), fill(k*n), make([]float32, m*n)
		p := make([]float32, kernel.PackedLen(k, n))
		var whole, packed, other []float64
		for range repetitions {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			other = append(other, seconds(30*time.Millisecond, func() { blas(m, n, k, a, b, c) }))
			whole = append(whole, seconds(30*time.Millisecond, func() {
				kn.PackN(p, b, k, n, n)
				kn.Mul(m, n, k, a, k, 1, p, k, 0, c, n, false)
			}))
			packed = append(packed, seconds(30*time.Millisecond, func() { kn.Mul(m, n, k, a, k, 1, p, k, 0, c, n, false) }))
		}
		flop := 2 * float64(m) * float64(n) * float64(k)
		for _, v := range []struct {
			what string
			sec  float64
		}{{"", median(whole)}, {" packed", median(packed)}} {
			out = append(out, metric.Figure{Name: fmt.Sprintf("gemm %s %dx%dx%d%s", kn.Name(), m, n, k, v.what),
				Value: flop / v.sec / 1e9, Unit: "GFLOP/s per CPU-second", Baseline: base, Ratio: median(other) / v.sec})
		}
	}
	return out, nil
}
