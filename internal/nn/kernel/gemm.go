package kernel

// Blocking (compute.md 4): a panel block of KC*NR floats stays in the first-level cache, a block of MC rows in the second.
const (
	MR = 6
	NR = 16
	KC = 256
	MC = 96
)

// PackedLen is the length of a packed k x n matrix: column panels of 16, the last one padded with zeros.
func PackedLen(k, n int) int { return (n + NR - 1) / NR * NR * k }

// Mul sets C = A*B, or adds to C. A is m x k with element (i, p) at a[i*rs+p*cs], so a transposed matrix needs no copy;
// b is a packed matrix of which rows k0 to k0+k of bk are used; C is m x n with row stride ldc.
func (kn Kernel) Mul(m, n, k int, a []float32, rs, cs int, b []float32, bk, k0 int, c []float32, ldc int, acc bool) {
	if m <= 0 || n <= 0 {
		return
	}
	// One look at the far corners replaces the bounds checks assembly does not have.
	if k > 0 {
		_ = a[(m-1)*rs+(k-1)*cs]
		_ = b[((n-1)/NR*bk+k0+k)*NR-1]
	}
	_ = c[(m-1)*ldc+n-1]
	if k <= 0 {
		if !acc {
			for i := range m {
				clear(c[i*ldc : i*ldc+n])
			}
		}
		return
	}
	for p := 0; p < k; p += KC {
		kc := min(KC, k-p)
		for i := 0; i < m; i += MC {
			mc := min(MC, m-i)
			for j := 0; j < n; j += NR {
				panel := b[(j/NR*bk+k0+p)*NR:]
				kn.block(mc, min(NR, n-j), kc, a[i*rs+p*cs:], rs, cs, panel, c[i*ldc+j:], ldc, acc || p > 0)
			}
		}
	}
}

// block multiplies at most MC rows by one panel.
func (kn Kernel) block(m, n, kc int, a []float32, rs, cs int, panel, c []float32, ldc int, acc bool) {
	if n == NR {
		kn.rows(m, kc, a, rs, cs, panel, c, ldc, acc)
		return
	}
	// A narrow last panel goes through a tile of full width.
	var t [MC * NR]float32
	if acc {
		for i := range m {
			copy(t[i*NR:], c[i*ldc:i*ldc+n])
		}
	}
	kn.rows(m, kc, a, rs, cs, panel, t[:], NR, acc)
	for i := range m {
		copy(c[i*ldc:i*ldc+n], t[i*NR:])
	}
}

func (kn Kernel) rows(m, kc int, a []float32, rs, cs int, panel, c []float32, ldc int, acc bool) {
	if !kn.asm {
		genericTile(m, kc, a, rs, cs, panel, c, ldc, acc)
		return
	}
	full := m / MR
	if full > 0 {
		asmTile(MR, full, kc, a, rs, cs, MR*rs, panel, c, ldc, acc)
	}
	if r := m % MR; r > 0 {
		asmTile(r, 1, kc, a[full*MR*rs:], rs, cs, 0, panel, c[full*MR*ldc:], ldc, acc)
	}
}
