//go:build amd64 && !purego

package kernel

import "golang.org/x/sys/cpu"

// haveAsm says whether the processor has AVX2 and FMA and the system saves their registers.
func haveAsm() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasOSXSAVE }

// asmTile computes count tiles of mr rows; strides in elements.
func asmTile(mr, count, kc int, a []float32, rs, ks, ts int, b, c []float32, ldc int, acc bool) {
	pa, pb, pc := &a[0], &b[0], &c[0]
	rs, ks, ts, ldc = 4*rs, 4*ks, 4*ts, 4*ldc
	switch mr {
	case 1:
		tile1(count, kc, pa, rs, ks, ts, pb, pc, ldc, acc)
	case 2:
		tile2(count, kc, pa, rs, ks, ts, pb, pc, ldc, acc)
	case 3:
		tile3(count, kc, pa, rs, ks, ts, pb, pc, ldc, acc)
	case 4:
		tile4(count, kc, pa, rs, ks, ts, pb, pc, ldc, acc)
	case 5:
		tile5(count, kc, pa, rs, ks, ts, pb, pc, ldc, acc)
	default:
		tile6(count, kc, pa, rs, ks, ts, pb, pc, ldc, acc)
	}
}
