//go:build kernelgen

// Command main writes the AVX2/FMA kernels: go generate ./internal/nn/kernel reproduces avx2_amd64.s byte for byte.
package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!purego")
	for mr := 1; mr <= 6; mr++ {
		tile(mr)
	}
	vectors()
	copyPanel()
	transposePanel()
	Generate()
}

// tile multiplies mr rows at a time: for each of count row tiles, C[mr,16] = or += A[mr,kc] * B[kc,16]. A is read in
// place through two strides, B is one packed panel. Each sum runs over k in order, so a row never depends on mr.
func tile(mr int) {
	TEXT(fmt.Sprintf("tile%d", mr), NOSPLIT,
		"func(count, kc int, a *float32, rs, ks, ts int, b, c *float32, ldc int, acc bool)")
	Doc(fmt.Sprintf("tile%d is the %dx16 micro-kernel; rs, ks, ts and ldc are in bytes.", mr, mr))
	Pragma("noescape")
	count := Load(Param("count"), GP64())
	a0 := Load(Param("a"), GP64())
	rs := Load(Param("rs"), GP64())
	ks := Load(Param("ks"), GP64())
	c := Load(Param("c"), GP64())
	ldc := Load(Param("ldc"), GP64())
	var rs3, rs5 Register
	if mr > 3 {
		rs3 = GP64()
		LEAQ(Mem{Base: rs, Index: rs, Scale: 2}, rs3)
	}
	if mr > 5 {
		rs5 = GP64()
		LEAQ(Mem{Base: rs, Index: rs, Scale: 4}, rs5)
	}
	a, b, kc, row := GP64(), GP64(), GP64(), GP64()
	acc := make([][2]VecVirtual, mr)
	for r := range acc {
		acc[r] = [2]VecVirtual{YMM(), YMM()}
	}
	b0, b1, av := YMM(), YMM(), YMM()
	step := func(off int) {
		VMOVUPS(Mem{Base: b, Disp: off}, b0)
		VMOVUPS(Mem{Base: b, Disp: off + 32}, b1)
		for r := range acc {
			src := Mem{Base: a}
			switch r {
			case 1:
				src.Index, src.Scale = rs, 1
			case 2:
				src.Index, src.Scale = rs, 2
			case 3:
				src.Index, src.Scale = rs3, 1
			case 4:
				src.Index, src.Scale = rs, 4
			case 5:
				src.Index, src.Scale = rs5, 1
			}
			VBROADCASTSS(src, av)
			VFMADD231PS(b0, av, acc[r][0])
			VFMADD231PS(b1, av, acc[r][1])
		}
		ADDQ(ks, a)
	}
	Label("tiles")
	MOVQ(a0, a)
	Load(Param("b"), b)
	Load(Param("kc"), kc)
	for r := range acc {
		VXORPS(acc[r][0], acc[r][0], acc[r][0])
		VXORPS(acc[r][1], acc[r][1], acc[r][1])
	}
	SUBQ(Imm(4), kc)
	JL(LabelRef("rest"))
	Label("four")
	for i := range 4 {
		step(64 * i)
	}
	ADDQ(I32(256), b)
	SUBQ(Imm(4), kc)
	JGE(LabelRef("four"))
	Label("rest")
	ADDQ(Imm(4), kc)
	JZ(LabelRef("store"))
	Label("one")
	step(0)
	ADDQ(Imm(64), b)
	DECQ(kc)
	JNZ(LabelRef("one"))
	Label("store")
	MOVQ(c, row)
	accArg, err := Param("acc").Resolve()
	if err != nil {
		panic(err)
	}
	CMPB(accArg.Addr, U8(0))
	JE(LabelRef("set"))
	for r := range acc {
		for h := range 2 {
			m := Mem{Base: row, Disp: 32 * h}
			VADDPS(m, acc[r][h], acc[r][h])
			VMOVUPS(acc[r][h], m)
		}
		if r+1 < mr {
			ADDQ(ldc, row)
		}
	}
	JMP(LabelRef("next"))
	Label("set")
	for r := range acc {
		for h := range 2 {
			VMOVUPS(acc[r][h], Mem{Base: row, Disp: 32 * h})
		}
		if r+1 < mr {
			ADDQ(ldc, row)
		}
	}
	Label("next")
	MOVQ(row, c)
	ADDQ(ldc, c)
	ts := GP64()
	Load(Param("ts"), ts)
	ADDQ(ts, a0)
	DECQ(count)
	JNZ(LabelRef("tiles"))
	VZEROUPPER()
	RET()
}

var mask Mem

func vectors() {
	mask = GLOBL("tailmask", RODATA|NOPTR)
	for i := range 16 {
		v := uint32(0)
		if i < 8 {
			v = 0xffffffff
		}
		DATA(4*i, U32(v))
	}
	reduceDot()
	reduce("sumVec", "the sum of x", 0, func(x, acc VecVirtual) { VADDPS(x, acc, acc) }, addHalves)
	reduce("maxVec", "the largest of x, which is not empty", math.Float32bits(float32(math.Inf(-1))),
		func(x, acc VecVirtual) { VMAXPS(acc, x, acc) },
		func(x, y, d VecVirtual) { VMAXPS(x, y, d) })

	each("axpyVec", "y += a*x", "(y, x *float32, n int, a float32)", []string{"y", "x"}, []string{"a"}, []int{0},
		func(v, s []VecVirtual) []VecVirtual { VFMADD231PS(v[1], s[0], v[0]); return v[:1] })
	each("scaleAddVec", "dst = a*x + b*y", "(dst, x, y *float32, n int, a, b float32)", []string{"dst", "x", "y"},
		[]string{"a", "b"}, []int{0}, func(v, s []VecVirtual) []VecVirtual {
			VMULPS(s[1], v[2], v[2])
			VFMADD231PS(v[1], s[0], v[2])
			return v[2:3]
		})
	each("mulScaleVec", "dst = a*x*z", "(dst, x, z *float32, n int, a float32)", []string{"dst", "x", "z"},
		[]string{"a"}, []int{0}, func(v, s []VecVirtual) []VecVirtual {
			VMULPS(s[0], v[1], v[1])
			VMULPS(v[1], v[2], v[2])
			return v[2:3]
		})
	each("mulAddVec", "dst += a*x*z", "(dst, x, z *float32, n int, a float32)", []string{"dst", "x", "z"},
		[]string{"a"}, []int{0}, func(v, s []VecVirtual) []VecVirtual {
			VMULPS(s[0], v[1], v[1])
			VFMADD231PS(v[1], v[2], v[0])
			return v[:1]
		})
	each("softGradVec", "dst = p*(dp-d)", "(dst, p, dp *float32, n int, d float32)", []string{"dst", "p", "dp"},
		[]string{"d"}, []int{0}, func(v, s []VecVirtual) []VecVirtual {
			VSUBPS(s[0], v[2], v[2])
			VMULPS(v[1], v[2], v[2])
			return v[2:3]
		})
	each("expVec", "dst = exp(x-m)", "(dst, x *float32, n int, m float32)", []string{"dst", "x"}, []string{"m"},
		[]int{0}, func(v, s []VecVirtual) []VecVirtual {
			VSUBPS(s[0], v[1], v[1])
			return []VecVirtual{exp(v[1])}
		})
	each("siluMulVec", "dst = silu(gate)*u", "(dst, gate, u *float32, n int)", []string{"dst", "gate", "u"}, nil, []int{0},
		func(v, _ []VecVirtual) []VecVirtual {
			s := sigmoid(v[1])
			VMULPS(s, v[1], v[1])
			VMULPS(v[1], v[2], v[2])
			return v[2:3]
		})
	each("siluGradVec", "act = silu(gate)*u and its gradients for dact", "(act, dg, du, gate, u, dact *float32, n int)",
		[]string{"act", "dg", "du", "gate", "u", "dact"}, nil, []int{0, 1, 2}, func(v, _ []VecVirtual) []VecVirtual {
			g, u, d := v[3], v[4], v[5]
			s := sigmoid(g)
			gs, act, du, t := YMM(), YMM(), YMM(), YMM()
			VMULPS(s, g, gs) // silu
			VMULPS(gs, u, act)
			VMULPS(d, gs, du)
			VSUBPS(gs, g, t) // g*(1-s)
			VFMADD213PS(s, s, t)
			VMULPS(u, d, d)
			VMULPS(t, d, d) // d*u*(s + s*g*(1-s))
			return []VecVirtual{act, d, du}
		})
}

// constant is eight copies of v. The bits are spelled out since the assembler reads a round float as an integer.
func constant(v float32) Mem { return constantBits(math.Float32bits(v)) }

func constantBits(v uint32) Mem {
	name := fmt.Sprintf("u%08x", v)
	if m, ok := constants[name]; ok {
		return m
	}
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 8 {
		DATA(4*i, U32(v))
	}
	constants[name] = m
	return m
}

var constants = map[string]Mem{}

// exp returns e^x: x = n*ln2 + r, a polynomial in r, then n into the exponent. Inputs are clamped to what float32 holds.
func exp(x VecVirtual) VecVirtual {
	lo, n, p, t := YMM(), YMM(), YMM(), YMM()
	VMOVUPS(constant(expLo), lo)
	VMAXPS(x, lo, x)
	VMOVUPS(constant(expHi), lo)
	VMINPS(x, lo, x)
	VMULPS(constant(log2e), x, n)
	VROUNDPS(Imm(0), n, n)
	VFNMADD231PS(constant(ln2Hi), n, x)
	VFNMADD231PS(constant(ln2Lo), n, x)
	VMOVUPS(constant(expPoly[0]), p)
	for _, c := range expPoly[1:] {
		VFMADD213PS(constant(c), x, p)
	}
	VMULPS(x, x, t)
	VFMADD213PS(x, t, p)
	VADDPS(constant(1), p, p)
	VCVTPS2DQ(n, n)
	VPSLLD(Imm(23), n, n)
	VPADDD(n, p, p)
	return p
}

const (
	expLo = -87.3
	expHi = 88.0
	log2e = 1.44269504088896341
	ln2Hi = 0.693359375
	ln2Lo = -2.12194440e-4
)

var expPoly = []float32{1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1}

// sigmoid returns 1/(1+e^-x) and keeps x.
func sigmoid(x VecVirtual) VecVirtual {
	t, one := YMM(), YMM()
	VXORPS(constantBits(0x80000000), x, t)
	e := exp(t)
	VMOVUPS(constant(1), one)
	VADDPS(one, e, e)
	VDIVPS(e, one, e)
	return e
}

// each emits an element-wise routine: eight lanes at a time, the tail through a mask, so that an element's value never
// depends on where it stands. The pointers out are written.
func each(name, what, sig string, ptrs, scalars []string, out []int, body func(v, s []VecVirtual) []VecVirtual) {
	TEXT(name, NOSPLIT, "func"+sig)
	Doc(name + " sets " + what + " for n elements.")
	Pragma("noescape")
	var p []Register
	for _, s := range ptrs {
		p = append(p, Load(Param(s), GP64()))
	}
	n := Load(Param("n"), GP64())
	var sc []VecVirtual
	for _, s := range scalars {
		addr, err := Param(s).Resolve()
		if err != nil {
			panic(err)
		}
		y := YMM()
		VBROADCASTSS(addr.Addr, y)
		sc = append(sc, y)
	}
	writeOnly := func(i int) bool { return ptrs[i] == "dst" && name != "mulAddVec" || name == "siluGradVec" && i < 3 }
	run := func(load func(m Mem, y VecVirtual), store func(y VecVirtual, m Mem)) {
		v := make([]VecVirtual, len(p))
		for i := range p {
			if writeOnly(i) {
				continue
			}
			v[i] = YMM()
			load(Mem{Base: p[i]}, v[i])
		}
		for i, r := range body(v, sc) {
			store(r, Mem{Base: p[out[i]]})
		}
	}
	SUBQ(Imm(8), n)
	JL(LabelRef("tail"))
	Label("loop")
	run(func(m Mem, y VecVirtual) { VMOVUPS(m, y) }, func(y VecVirtual, m Mem) { VMOVUPS(y, m) })
	for i := range p {
		ADDQ(Imm(32), p[i])
	}
	SUBQ(Imm(8), n)
	JGE(LabelRef("loop"))
	Label("tail")
	ADDQ(Imm(8), n)
	JZ(LabelRef("done"))
	mk := loadMask(n)
	run(func(m Mem, y VecVirtual) { VMASKMOVPS(m, mk, y) }, func(y VecVirtual, m Mem) { VMASKMOVPS(y, mk, m) })
	Label("done")
	VZEROUPPER()
	RET()
}

// loadMask returns a mask of the first n lanes, 0 < n < 8.
func loadMask(n Register) VecVirtual {
	at, off := GP64(), GP64()
	LEAQ(mask, at)
	MOVQ(U32(8), off)
	SUBQ(n, off)
	mk := YMM()
	VMOVUPS(Mem{Base: at, Index: off, Scale: 4}, mk)
	return mk
}

func addHalves(x, y, d VecVirtual) { VADDPS(x, y, d) }

// fold combines the lanes of y into its lowest and returns it.
func fold(y VecVirtual, op func(x, y, d VecVirtual)) {
	x, t := y.AsX().(VecVirtual), XMM()
	VEXTRACTF128(Imm(1), y, t)
	op(t, x, x)
	VPERMILPS(Imm(0x4e), x, t)
	op(t, x, x)
	VPERMILPS(Imm(0xb1), x, t)
	op(t, x, x)
	addr, err := ReturnIndex(0).Resolve()
	if err != nil {
		panic(err)
	}
	VMOVSS(x, addr.Addr)
}

func reduce(name, what string, start uint32, op func(x, acc VecVirtual), join func(x, y, d VecVirtual)) {
	TEXT(name, NOSPLIT, "func(x *float32, n int) float32")
	Doc(name + " returns " + what + ".")
	Pragma("noescape")
	x := Load(Param("x"), GP64())
	n := Load(Param("n"), GP64())
	var acc [4]VecVirtual
	for i := range acc {
		acc[i] = YMM()
		VMOVUPS(constantBits(start), acc[i])
	}
	v := YMM()
	SUBQ(Imm(32), n)
	JL(LabelRef("eights"))
	Label("loop")
	for i := range acc {
		VMOVUPS(Mem{Base: x, Disp: 32 * i}, v)
		op(v, acc[i])
	}
	ADDQ(I32(128), x)
	SUBQ(Imm(32), n)
	JGE(LabelRef("loop"))
	Label("eights")
	ADDQ(Imm(32), n)
	SUBQ(Imm(8), n)
	JL(LabelRef("tail"))
	Label("eight")
	VMOVUPS(Mem{Base: x}, v)
	op(v, acc[0])
	ADDQ(Imm(32), x)
	SUBQ(Imm(8), n)
	JGE(LabelRef("eight"))
	Label("tail")
	ADDQ(Imm(8), n)
	JZ(LabelRef("done"))
	mk, fill := loadMask(n), YMM()
	VMASKMOVPS(Mem{Base: x}, mk, v)
	VMOVUPS(constantBits(start), fill)
	VBLENDVPS(mk, v, fill, v)
	op(v, acc[1])
	Label("done")
	join(acc[1], acc[0], acc[0])
	join(acc[3], acc[2], acc[2])
	join(acc[2], acc[0], acc[0])
	fold(acc[0], join)
	VZEROUPPER()
	RET()
}

func reduceDot() {
	TEXT("dotVec", NOSPLIT, "func(x, y *float32, n int) float32")
	Doc("dotVec returns the sum of x*y.")
	Pragma("noescape")
	x := Load(Param("x"), GP64())
	y := Load(Param("y"), GP64())
	n := Load(Param("n"), GP64())
	var acc [4]VecVirtual
	for i := range acc {
		acc[i] = YMM()
		VXORPS(acc[i], acc[i], acc[i])
	}
	v, w := YMM(), YMM()
	SUBQ(Imm(32), n)
	JL(LabelRef("eights"))
	Label("loop")
	for i := range acc {
		VMOVUPS(Mem{Base: x, Disp: 32 * i}, v)
		VFMADD231PS(Mem{Base: y, Disp: 32 * i}, v, acc[i])
	}
	ADDQ(I32(128), x)
	ADDQ(I32(128), y)
	SUBQ(Imm(32), n)
	JGE(LabelRef("loop"))
	Label("eights")
	ADDQ(Imm(32), n)
	SUBQ(Imm(8), n)
	JL(LabelRef("tail"))
	Label("eight")
	VMOVUPS(Mem{Base: x}, v)
	VFMADD231PS(Mem{Base: y}, v, acc[0])
	ADDQ(Imm(32), x)
	ADDQ(Imm(32), y)
	SUBQ(Imm(8), n)
	JGE(LabelRef("eight"))
	Label("tail")
	ADDQ(Imm(8), n)
	JZ(LabelRef("done"))
	mk := loadMask(n)
	VMASKMOVPS(Mem{Base: x}, mk, v)
	VMASKMOVPS(Mem{Base: y}, mk, w)
	VFMADD231PS(w, v, acc[1])
	Label("done")
	VADDPS(acc[1], acc[0], acc[0])
	VADDPS(acc[3], acc[2], acc[2])
	VADDPS(acc[2], acc[0], acc[0])
	fold(acc[0], addHalves)
	VZEROUPPER()
	RET()
}

// copyPanel gathers rows of 16 numbers that lie ld apart.
func copyPanel() {
	TEXT("copyPanel", NOSPLIT, "func(dst, src *float32, rows, ld int)")
	Doc("copyPanel copies rows of 16 numbers, ld bytes apart in src, next to each other.")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	rows := Load(Param("rows"), GP64())
	ld := Load(Param("ld"), GP64())
	a, b := YMM(), YMM()
	Label("loop")
	VMOVUPS(Mem{Base: src}, a)
	VMOVUPS(Mem{Base: src, Disp: 32}, b)
	VMOVUPS(a, Mem{Base: dst})
	VMOVUPS(b, Mem{Base: dst, Disp: 32})
	ADDQ(ld, src)
	ADDQ(Imm(64), dst)
	DECQ(rows)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}

// transposePanel turns eight rows of src into eight columns of a panel, eight numbers of each row at a time.
func transposePanel() {
	TEXT("transposePanel", NOSPLIT, "func(dst, src *float32, blocks, ld int)")
	Doc("transposePanel writes 8 rows of 8*blocks numbers, ld bytes apart in src, as 8 of the 16 columns of a panel.")
	Pragma("noescape")
	dst := Load(Param("dst"), GP64())
	src := Load(Param("src"), GP64())
	blocks := Load(Param("blocks"), GP64())
	ld := Load(Param("ld"), GP64())
	ld3, src4 := GP64(), GP64()
	LEAQ(Mem{Base: ld, Index: ld, Scale: 2}, ld3)
	LEAQ(Mem{Base: src, Index: ld, Scale: 4}, src4)
	Label("loop")
	var r, t [8]VecVirtual
	for i := range r {
		base := src
		if i >= 4 {
			base = src4
		}
		m := Mem{Base: base}
		switch i % 4 {
		case 1:
			m.Index, m.Scale = ld, 1
		case 2:
			m.Index, m.Scale = ld, 2
		case 3:
			m.Index, m.Scale = ld3, 1
		}
		r[i] = YMM()
		VMOVUPS(m, r[i])
	}
	for i := 0; i < 8; i += 2 {
		t[i], t[i+1] = YMM(), YMM()
		VUNPCKLPS(r[i+1], r[i], t[i])
		VUNPCKHPS(r[i+1], r[i], t[i+1])
	}
	for i := 0; i < 8; i += 4 {
		for h := range 2 { // rows i to i+3, columns 2h and 2h+1 of each half
			VSHUFPS(Imm(0x44), t[i+2+h], t[i+h], r[i+2*h])
			VSHUFPS(Imm(0xee), t[i+2+h], t[i+h], r[i+2*h+1])
		}
	}
	out := YMM()
	for i := range 4 {
		VPERM2F128(Imm(0x20), r[i+4], r[i], out)
		VMOVUPS(out, Mem{Base: dst, Disp: 64 * i})
	}
	for i := range 4 {
		VPERM2F128(Imm(0x31), r[i+4], r[i], out)
		VMOVUPS(out, Mem{Base: dst, Disp: 64 * (i + 4)})
	}
	ADDQ(Imm(32), src)
	ADDQ(Imm(32), src4)
	ADDQ(I32(512), dst)
	DECQ(blocks)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()
}
