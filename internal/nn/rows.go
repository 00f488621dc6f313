package nn

import (
	"math"

	"agentrl/internal/nn/kernel"
)

// The functions here work on rows, one per token, and are the same for training, scoring and decoding.

// normRow writes the RMS-normalised x times gain and returns the reciprocal of the root mean square.
func normRow(kn kernel.Kernel, out, x, gain []float32, eps float64) float32 {
	ms := float64(kn.Dot(x, x)) / float64(len(x))
	r := float32(1 / math.Sqrt(ms+eps))
	kn.MulScale(out, x, gain, r)
	return r
}

// normRows normalises n rows; rstd may be nil.
func (p *Packed) normRows(out, x, gain, rstd []float32, n int) {
	d := p.cfg.Dim
	for i := range n {
		r := normRow(p.kn, out[i*d:][:d], x[i*d:][:d], gain, p.cfg.NormEps)
		if rstd != nil {
			rstd[i] = r
		}
	}
}

// embedRows looks up n tokens.
func (p *Packed) embedRows(x []float32, ids []int32) {
	d := p.cfg.Dim
	for i, id := range ids {
		copy(x[i*d:][:d], p.embed[int(id)*d:])
	}
}

// preAttention turns n residual rows into rotated queries (scaled by 1/sqrt(headDim)), rotated keys, and values.
func (p *Packed) preAttention(l int, qkv, x, h, rstd []float32, pos []int32, n int) {
	c, pl := p.cfg, &p.layers[l]
	d, w, hd := c.Dim, c.QKVDim(), c.HeadDim()
	p.normRows(h, x, pl.norm1, rstd, n)
	p.kn.Mul(n, w, d, h, d, 1, pl.qkv, d, 0, qkv, w, false)
	scale := p.qScale()
	for i := range n {
		row := qkv[i*w:][:w]
		for j := range c.Heads {
			p.rope.rotate(row[j*hd:][:hd], int(pos[i]), scale, 1)
		}
		for j := range c.KVHeads {
			p.rope.rotate(row[d+j*hd:][:hd], int(pos[i]), 1, 1)
		}
	}
}

func (p *Packed) qScale() float32 { return float32(1 / math.Sqrt(float64(p.cfg.HeadDim()))) }

// postAttention adds the projected attention to n residual rows: xmid = x + att*Wo; then the feed-forward block:
// out = xmid + down(silu(gate)*up). gu is [n, 2F], h and act are scratch.
func (p *Packed) postAttention(l int, out, xmid, x, att, gu, h, act, rstd []float32, n int) {
	c, pl := p.cfg, &p.layers[l]
	d, f := c.Dim, c.FFN
	copy(xmid[:n*d], x[:n*d])
	p.kn.Mul(n, d, d, att, d, 1, pl.o, d, 0, xmid, d, true)
	p.normRows(h, xmid, pl.norm2, rstd, n)
	p.kn.Mul(n, 2*f, d, h, d, 1, pl.gateUp, d, 0, gu, 2*f, false)
	for i := range n {
		g := gu[i*2*f:][:2*f]
		p.kn.SiLUMul(act[i*f:][:f], g[:f], g[f:])
	}
	copy(out[:n*d], xmid[:n*d])
	p.kn.Mul(n, d, f, act, f, 1, pl.down, f, 0, out, d, true)
}

// attend lets nr query rows look at the keys of one head. kp holds the keys packed headDim x keys, vp the values packed
// keys x headDim with vrows rows per panel. Row i sees the first base+i*inc keys. scores is scratch for nr rows of all
// keys rounded up to 16. big and inv, if not nil, receive the largest score and the reciprocal of the sum, stride st.
func (p *Packed) attend(nr int, q []float32, qrs int, kp, vp []float32, vrows, base, inc int, scores, out []float32, ors int,
	big, inv []float32, st int) {
	hd := p.cfg.HeadDim()
	keys := base + inc*(nr-1)
	pad := pad16(keys)
	p.kn.Mul(nr, pad, hd, q, qrs, 1, kp, hd, 0, scores, pad, false)
	var sums [attnRows]float32
	for i := range nr {
		row := scores[i*pad:][:pad]
		lim := base + inc*i
		m := p.kn.Max(row[:lim])
		p.kn.Exp(row[:lim], row[:lim], m)
		clear(row[lim:])
		sums[i] = 1 / p.kn.Sum(row[:lim])
		if big != nil {
			big[i*st], inv[i*st] = m, sums[i]
		}
	}
	p.kn.Mul(nr, hd, keys, scores, pad, 1, vp, vrows, 0, out, ors, false)
	for i := range nr {
		o := out[i*ors:][:hd]
		p.kn.ScaleAdd(o, o, o, sums[i], 0)
	}
}

// attnRows is the most query rows attend takes at once.
const attnRows = 48

func pad16(n int) int { return (n + 15) &^ 15 }
