package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func paths(t testing.TB) []Kernel {
	t.Helper()
	ks := []Kernel{{}}
	if haveAsm() {
		ks = append(ks, Kernel{asm: true})
	}
	return ks
}

func random(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// TestMulAgainstTripleLoop covers every small shape and some large ones, both orders of A, both packings, with and
// without adding, and checks that nothing outside C is written.
func TestMulAgainstTripleLoop(t *testing.T) {
	t.Parallel()
	type shape struct{ m, n, k int }
	var shapes []shape
	for m := 1; m <= 40; m++ {
		for n := 1; n <= 40; n++ {
			for k := 1; k <= 40; k++ {
				if (m*7+n*3+k)%5 == 0 || m <= 7 && n <= 18 && k <= 9 {
					shapes = append(shapes, shape{m, n, k})
				}
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 12 {
		shapes = append(shapes, shape{1 + rng.IntN(220), 1 + rng.IntN(120), 1 + rng.IntN(700)})
	}
	for _, kn := range paths(t) {
		for si, s := range shapes {
			checkMul(t, kn, rng, s.m, s.n, s.k, si%2 == 0, si%3 == 0, si%4 < 2)
		}
	}
}

func checkMul(t *testing.T, kn Kernel, rng *rand.Rand, m, n, k int, transA, transB, acc bool) {
	t.Helper()
	const pad = 3
	rs, cs := k+pad, 1
	if transA {
		rs, cs = 1, m+pad
	}
	a := random(rng, (m-1)*rs+(k-1)*cs+1)
	b := make([]float32, PackedLen(k, n))
	var bat func(p, j int) float32
	if transB {
		w := random(rng, n*(k+pad))
		kn.PackT(b, w, n, k, k+pad)
		bat = func(p, j int) float32 { return w[j*(k+pad)+p] }
	} else {
		w := random(rng, k*(n+pad))
		kn.PackN(b, w, k, n, n+pad)
		bat = func(p, j int) float32 { return w[p*(n+pad)+j] }
	}
	ldc := n + pad
	c := random(rng, m*ldc)
	before := append([]float32(nil), c...)
	kn.Mul(m, n, k, a, rs, cs, b, k, 0, c, ldc, acc)
	for i := range m {
		for j := range ldc {
			if j >= n {
				if c[i*ldc+j] != before[i*ldc+j] {
					t.Fatalf("%s %dx%dx%d: wrote outside C at %d,%d", kn.Name(), m, n, k, i, j)
				}
				continue
			}
			want, size := 0.0, 1.0
			if acc {
				want = float64(before[i*ldc+j])
			}
			for p := range k {
				v := float64(a[i*rs+p*cs]) * float64(bat(p, j))
				want += v
				size += math.Abs(v)
			}
			if got := float64(c[i*ldc+j]); !(math.Abs(got-want) <= 1e-6*size) {
				t.Fatalf("%s %dx%dx%d at %d,%d: %g, want %g", kn.Name(), m, n, k, i, j, got, want)
			}
		}
	}
}

// TestRowsDoNotDependOnTheirNumber is what lets a decoding step reproduce a training forward pass bit for bit.
func TestRowsDoNotDependOnTheirNumber(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	const m, n, k = 25, 40, 600
	a, w := random(rng, m*k), random(rng, n*k)
	b := make([]float32, PackedLen(k, n))
	for _, kn := range paths(t) {
		kn.PackT(b, w, n, k, k)
		all := make([]float32, m*n)
		kn.Mul(m, n, k, a, k, 1, b, k, 0, all, n, false)
		for rows := 1; rows < 14; rows++ {
			for at := 0; at+rows <= m; at += 5 {
				c := make([]float32, rows*n)
				kn.Mul(rows, n, k, a[at*k:], k, 1, b, k, 0, c, n, false)
				for i, v := range c {
					if v != all[at*n+i] {
						t.Fatalf("%s: %d rows from %d differ at %d", kn.Name(), rows, at, i)
					}
				}
			}
		}
	}
}

func TestNaNPropagates(t *testing.T) {
	t.Parallel()
	nan := float32(math.NaN())
	for _, kn := range paths(t) {
		x := []float32{1, 2, nan, 4, 5, 6, 7, 8, 9}
		one := []float32{1, 1, 1, 1, 1, 1, 1, 1, 1}
		out := make([]float32, 9)
		kn.Exp(out, x, 0)
		if out[2] == out[2] || out[3] != out[3] {
			t.Errorf("%s: exp lost or spread NaN: %v", kn.Name(), out)
		}
		if d := kn.Dot(x, one); d == d {
			t.Errorf("%s: dot lost NaN", kn.Name())
		}
		b := make([]float32, PackedLen(9, 1))
		kn.PackN(b, one, 9, 1, 1)
		c := make([]float32, 1)
		kn.Mul(1, 1, 9, x, 9, 1, b, 9, 0, c, 1, false)
		if c[0] == c[0] {
			t.Errorf("%s: the product lost NaN", kn.Name())
		}
	}
}

func TestVectors(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	near := func(name string, got float32, want, size float64) {
		t.Helper()
		if !(math.Abs(float64(got)-want) <= 2e-6*(math.Abs(want)+size)) {
			t.Fatalf("%s: %g, want %g", name, got, want)
		}
	}
	silu := func(x float64) float64 { return x / (1 + math.Exp(-x)) }
	for _, kn := range paths(t) {
		for n := 1; n <= 75; n++ {
			name := fmt.Sprintf("%s n=%d", kn.Name(), n)
			x, y, z := random(rng, n), random(rng, n), random(rng, n)
			var dot, sum, abs float64
			big := math.Inf(-1)
			for i := range x {
				dot += float64(x[i]) * float64(y[i])
				sum += float64(x[i])
				abs += math.Abs(float64(x[i])) + math.Abs(float64(x[i])*float64(y[i]))
				big = max(big, float64(x[i]))
			}
			near(name+" dot", kn.Dot(x, y), dot, abs)
			near(name+" sum", kn.Sum(x), sum, abs)
			near(name+" max", kn.Max(x), big, 0)
			guard := make([]float32, n+8)
			check := func(op string, f func(dst []float32), want func(i int) float64) {
				t.Helper()
				for i := range guard {
					guard[i] = 0.5
				}
				f(guard[:n:n])
				for i := range guard {
					w := 0.5
					if i < n {
						w = want(i)
					}
					near(name+" "+op, guard[i], w, 1)
				}
			}
			f := func(s []float32, i int) float64 { return float64(s[i]) }
			check("axpy", func(d []float32) { kn.Axpy(d, x, 2.5) }, func(i int) float64 { return 0.5 + 2.5*f(x, i) })
			check("scaleadd", func(d []float32) { kn.ScaleAdd(d, x, y, 2, -3) }, func(i int) float64 { return 2*f(x, i) - 3*f(y, i) })
			check("mulscale", func(d []float32) { kn.MulScale(d, x, y, 2) }, func(i int) float64 { return 2 * f(x, i) * f(y, i) })
			check("muladd", func(d []float32) { kn.MulAdd(d, x, y, 2) }, func(i int) float64 { return 0.5 + 2*f(x, i)*f(y, i) })
			check("softgrad", func(d []float32) { kn.SoftGrad(d, x, y, 0.3) }, func(i int) float64 { return f(x, i) * (f(y, i) - float64(float32(0.3))) })
			check("exp", func(d []float32) { kn.Exp(d, x, 0.7) }, func(i int) float64 { return math.Exp(f(x, i) - float64(float32(0.7))) })
			check("silumul", func(d []float32) { kn.SiLUMul(d, x, y) }, func(i int) float64 { return silu(f(x, i)) * f(y, i) })
			act, dg, du := make([]float32, n), make([]float32, n), make([]float32, n)
			kn.SiLUGrad(act, dg, du, x, y, z)
			for i := range n {
				s := 1 / (1 + math.Exp(-f(x, i)))
				near(name+" act", act[i], silu(f(x, i))*f(y, i), 1)
				near(name+" du", du[i], silu(f(x, i))*f(z, i), 1)
				near(name+" dg", dg[i], f(z, i)*f(y, i)*(s+f(x, i)*s*(1-s)), 1)
			}
		}
	}
}

func TestExpRange(t *testing.T) {
	t.Parallel()
	for _, kn := range paths(t) {
		for x := float32(-87); x < 88; x += 0.0371 {
			in := []float32{x}
			out := []float32{0}
			kn.Exp(out, in, 0)
			want := math.Exp(float64(x))
			if math.Abs(float64(out[0])-want) > 3e-7*want {
				t.Fatalf("%s: exp(%g) = %g, want %g", kn.Name(), x, out[0], want)
			}
		}
	}
}

func TestNewChoosesAPath(t *testing.T) {
	t.Parallel()
	best, err := New("")
	if err != nil || best.asm != haveAsm() {
		t.Errorf("best = %v, %v", best, err)
	}
	if k, err := New(Generic); err != nil || k.Name() != Generic {
		t.Errorf("generic = %v, %v", k, err)
	}
	if _, err := New("sse9"); err == nil {
		t.Error("an unknown name must be refused")
	}
	if k, err := New(AVX2); (err == nil) != haveAsm() || err == nil && k.Name() != AVX2 {
		t.Errorf("avx2 = %v, %v", k, err)
	}
}

func BenchmarkMul(b *testing.B) {
	const n = 256
	rng := rand.New(rand.NewPCG(1, 1))
	x, y, c := random(rng, n*n), random(rng, n*n), make([]float32, n*n)
	p := make([]float32, PackedLen(n, n))
	for _, kn := range paths(b) {
		kn.PackN(p, y, n, n, n)
		b.Run(kn.Name(), func(b *testing.B) {
			for b.Loop() {
				kn.Mul(n, n, n, x, n, 1, p, n, 0, c, n, false)
			}
			b.ReportMetric(2*n*n*n*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
		})
	}
}
