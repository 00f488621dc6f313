//go:build !openblas || !cgo

package bench

import (
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"
)

// baseline multiplies with gonum's own Go code.
func baseline() (name string, gemm func(m, n, k int, a, b, c []float32)) {
	return "gonum", func(m, n, k int, a, b, c []float32) {
		blas32.Gemm(blas.NoTrans, blas.NoTrans, 1, blas32.General{Rows: m, Cols: k, Stride: k, Data: a},
			blas32.General{Rows: k, Cols: n, Stride: n, Data: b}, 0, blas32.General{Rows: m, Cols: n, Stride: n, Data: c})
	}
}
