package kernel

// PackT packs the transpose of w: w is n x k with row stride ld (a weight matrix, outputs by inputs), the packed matrix is
// k x n.
func (kn Kernel) PackT(dst, w []float32, n, k, ld int) {
	for j := 0; j < n; j += NR {
		panel := dst[j*k:][: k*NR : k*NR]
		cols := min(NR, n-j)
		if cols < NR {
			clear(panel)
		}
		c := 0
		if kn.asm && k >= 8 {
			for ; c+8 <= cols; c += 8 {
				src := w[(j+c)*ld:]
				_ = src[7*ld+k-1]
				transposePanel(&panel[c], &src[0], k/8, 4*ld)
				transposeRows(panel, src, c, c+8, k/8*8, k, ld)
			}
		}
		if c < cols {
			transposeRows(panel, w[(j+c)*ld:], c, cols, 0, k, ld)
		}
	}
}

// transposeRows writes rows c0 to c1 (of which src holds the first) as columns of the panel, from column p0 to k.
func transposeRows(panel, src []float32, c0, c1, p0, k, ld int) {
	for c := c0; c < c1; c++ {
		row := src[(c-c0)*ld:][:k]
		for p := p0; p < k; p++ {
			panel[p*NR+c] = row[p]
		}
	}
}

// PackN packs b, which is k x n with row stride ld.
func (kn Kernel) PackN(dst, b []float32, k, n, ld int) { kn.PackNRows(dst, b, k, 0, k, n, ld) }

// packBlock is the number of rows packed for all panels before going on, so that wide rows are read in order.
const packBlock = 16

// PackNRows packs rows of b as rows k0 to k0+k of a packed bk x n matrix.
func (kn Kernel) PackNRows(dst, b []float32, bk, k0, k, n, ld int) {
	full := n / NR
	for p0 := 0; p0 < k; p0 += packBlock {
		rows := min(packBlock, k-p0)
		for j := range full {
			panel := dst[(j*bk+k0+p0)*NR:][: rows*NR : rows*NR]
			src := b[p0*ld+j*NR:][: (rows-1)*ld+NR : (rows-1)*ld+NR]
			if kn.asm {
				copyPanel(&panel[0], &src[0], rows, 4*ld)
				continue
			}
			for p := range rows {
				copy(panel[p*NR:][:NR], src[p*ld:])
			}
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
