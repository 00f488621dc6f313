package kernel

// PackT packs the transpose of w: w is n x k with row stride ld (a weight matrix, outputs by inputs), the packed matrix is
// k x n.
func PackT(dst, w []float32, n, k, ld int) { PackTRows(dst, w, k, 0, n, k, ld) }

// PackTRows packs columns n0 to n0+n of the packed k x N matrix from rows of w; n0 is a multiple of 16 and columns up to
// the next multiple are cleared. bk is k.
func PackTRows(dst, w []float32, bk, n0, n, k, ld int) {
	for j := 0; j < n; j += NR {
		panel := dst[(n0+j)*bk:][: bk*NR : bk*NR]
		cols := min(NR, n-j)
		if cols < NR {
			clear(panel[:k*NR])
		}
		for c := range cols {
			row := w[(j+c)*ld:][:k]
			for p, v := range row {
				panel[p*NR+c] = v
			}
		}
	}
}

// PackN packs b, which is k x n with row stride ld.
func PackN(dst, b []float32, k, n, ld int) { PackNRows(dst, b, k, 0, k, n, ld) }

// PackNRows packs rows of b as rows k0 to k0+k of a packed bk x n matrix.
func PackNRows(dst, b []float32, bk, k0, k, n, ld int) {
	full := n / NR
	for j := range full {
		panel := dst[(j*bk+k0)*NR:][: k*NR : k*NR]
		src := b[j*NR:]
		for p := range k {
			*(*[NR]float32)(panel[p*NR:]) = *(*[NR]float32)(src[p*ld:])
		}
	}
	if r := n % NR; r > 0 {
		panel := dst[(full*bk+k0)*NR:][: k*NR : k*NR]
		clear(panel)
		for p := range k {
			copy(panel[p*NR:p*NR+r], b[p*ld+full*NR:])
		}
	}
}
