package kernel

import "math"

// Dot returns the sum of x*y over len(x).
func (kn Kernel) Dot(x, y []float32) float32 {
	if len(x) == 0 {
		return 0
	}
	y = y[:len(x)]
	if kn.asm {
		return dotVec(&x[0], &y[0], len(x))
	}
	var s [4]float32
	i := 0
	for ; i+3 < len(x); i += 4 {
		s[0] += float32(x[i] * y[i])
		s[1] += float32(x[i+1] * y[i+1])
		s[2] += float32(x[i+2] * y[i+2])
		s[3] += float32(x[i+3] * y[i+3])
	}
	for ; i < len(x); i++ {
		s[0] += float32(x[i] * y[i])
	}
	return s[0] + s[1] + (s[2] + s[3])
}

// Sum returns the sum of x.
func (kn Kernel) Sum(x []float32) float32 {
	if kn.asm && len(x) > 0 {
		return sumVec(&x[0], len(x))
	}
	var a, b float32
	for i, v := range x {
		if i&1 == 0 {
			a += v
		} else {
			b += v
		}
	}
	return a + b
}

// Max returns the largest of x, which is not empty.
func (kn Kernel) Max(x []float32) float32 {
	if kn.asm && len(x) > 0 {
		return maxVec(&x[0], len(x))
	}
	m := x[0]
	for _, v := range x[1:] {
		m = max(m, v)
	}
	return m
}

// Axpy adds a*x to y.
func (kn Kernel) Axpy(y, x []float32, a float32) {
	if len(x) == 0 {
		return
	}
	y = y[:len(x)]
	if kn.asm {
		axpyVec(&y[0], &x[0], len(x), a)
		return
	}
	for i, v := range x {
		y[i] += float32(a * v)
	}
}

// ScaleAdd sets dst = a*x + b*y; the slices may be the same.
func (kn Kernel) ScaleAdd(dst, x, y []float32, a, b float32) {
	if len(dst) == 0 {
		return
	}
	x, y = x[:len(dst)], y[:len(dst)]
	if kn.asm {
		scaleAddVec(&dst[0], &x[0], &y[0], len(dst), a, b)
		return
	}
	for i := range dst {
		dst[i] = float32(a*x[i]) + float32(b*y[i])
	}
}

// MulScale sets dst = a*x*g.
func (kn Kernel) MulScale(dst, x, g []float32, a float32) {
	if len(dst) == 0 {
		return
	}
	x, g = x[:len(dst)], g[:len(dst)]
	if kn.asm {
		mulScaleVec(&dst[0], &x[0], &g[0], len(dst), a)
		return
	}
	for i := range dst {
		dst[i] = a * x[i] * g[i]
	}
}

// MulAdd adds a*x*g to dst.
func (kn Kernel) MulAdd(dst, x, g []float32, a float32) {
	if len(dst) == 0 {
		return
	}
	x, g = x[:len(dst)], g[:len(dst)]
	if kn.asm {
		mulAddVec(&dst[0], &x[0], &g[0], len(dst), a)
		return
	}
	for i := range dst {
		dst[i] += float32(a * x[i] * g[i])
	}
}

// SoftGrad sets dst = p*(dp-d), the gradient of a softmax.
func (kn Kernel) SoftGrad(dst, p, dp []float32, d float32) {
	if len(dst) == 0 {
		return
	}
	p, dp = p[:len(dst)], dp[:len(dst)]
	if kn.asm {
		softGradVec(&dst[0], &p[0], &dp[0], len(dst), d)
		return
	}
	for i := range dst {
		dst[i] = p[i] * (dp[i] - d)
	}
}

// Exp sets dst = e^(x-m).
func (kn Kernel) Exp(dst, x []float32, m float32) {
	if len(dst) == 0 {
		return
	}
	x = x[:len(dst)]
	if kn.asm {
		expVec(&dst[0], &x[0], len(dst), m)
		return
	}
	for i, v := range x {
		dst[i] = exp(v - m)
	}
}

// SiLUMul sets dst = silu(g)*u, the gated unit of the feed-forward layer.
func (kn Kernel) SiLUMul(dst, g, u []float32) {
	if len(dst) == 0 {
		return
	}
	g, u = g[:len(dst)], u[:len(dst)]
	if kn.asm {
		siluMulVec(&dst[0], &g[0], &u[0], len(dst))
		return
	}
	for i, v := range g {
		dst[i] = v / (1 + exp(-v)) * u[i]
	}
}

// SiLUGrad sets act = silu(g)*u and dg, du to the gradients of g and u for the gradient dact of act.
func (kn Kernel) SiLUGrad(act, dg, du, g, u, dact []float32) {
	n := len(act)
	if n == 0 {
		return
	}
	dg, du, g, u, dact = dg[:n], du[:n], g[:n], u[:n], dact[:n]
	if kn.asm {
		siluGradVec(&act[0], &dg[0], &du[0], &g[0], &u[0], &dact[0], n)
		return
	}
	for i, v := range g {
		s := 1 / (1 + exp(-v))
		gs := v * s
		act[i] = gs * u[i]
		d := dact[i]
		du[i] = d * gs
		dg[i] = d * u[i] * (s + float32(s*(v-gs)))
	}
}

// exp is e^x in single precision: x = n*ln2 + r, a polynomial in r, then n into the exponent. NaN stays NaN.
func exp(x float32) float32 {
	if x != x {
		return x
	}
	x = min(max(x, -87.3), 88)
	n := math.RoundToEven(float64(x) * math.Log2E)
	r := float32(float64(x) - n*math.Ln2)
	p := float32(1.9875691500e-4)
	p = float32(p*r) + 1.3981999507e-3
	p = float32(p*r) + 8.3334519073e-3
	p = float32(p*r) + 4.1665795894e-2
	p = float32(p*r) + 1.6666665459e-1
	p = float32(p*r) + 5.0000001201e-1
	p = float32(float32(r*r)*p) + r + 1
	return math.Float32frombits(uint32(int32(math.Float32bits(p)) + int32(n)<<23))
}
