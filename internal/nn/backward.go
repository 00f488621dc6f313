package nn

import (
	"math"

	"agentrl/internal/nn/kernel"
)

// backPacks holds the weights packed for dX = dY*W, outputs x inputs.
type backPacks struct {
	embed  []float32
	layers []backLayer
}

type backLayer struct{ qkv, o, gateUp, down []float32 }

func newBackPacks(c Config) backPacks {
	d, pl := c.Dim, kernel.PackedLen
	b := backPacks{embed: make([]float32, pl(c.Vocab, d)), layers: make([]backLayer, c.Layers)}
	for i := range b.layers {
		b.layers[i] = backLayer{
			qkv: make([]float32, pl(c.QKVDim(), d)), o: make([]float32, pl(d, d)),
			gateUp: make([]float32, pl(2*c.FFN, d)), down: make([]float32, pl(d, c.FFN)),
		}
	}
	return b
}

func (b *backPacks) load(m *Model) {
	c, d := m.cfg, m.cfg.Dim
	m.kn.PackN(b.embed, m.flat[m.lay.embed:], c.Vocab, d, d)
	for i, l := range m.lay.layers {
		m.kn.PackN(b.layers[i].qkv, m.flat[l.qkv:], c.QKVDim(), d, d)
		m.kn.PackN(b.layers[i].o, m.flat[l.o:], d, d, d)
		m.kn.PackN(b.layers[i].gateUp, m.flat[l.gateUp:], 2*c.FFN, d, d)
		m.kn.PackN(b.layers[i].down, m.flat[l.down:], d, c.FFN, c.FFN)
	}
}

// gradBlock is some rows of one weight gradient: C[m,n] += A^T * B over all tokens.
type gradBlock struct {
	a     []float32
	cs    int // row stride of A
	m, n  int
	b, to []float32
}

// backward takes act.dx, the gradient of the last residual stream, down to the embedding and adds all weight gradients.
func (t *Trainer) backward() {
	c, a, s := t.cfg, &t.act, &t.tasks
	n := len(t.mb.ids)
	for l := c.Layers - 1; l >= 0; l-- {
		s.layer = l
		lay := t.model.lay.layers[l]
		t.pool.run(chunks(n), s.rowsBack)
		t.addGain(lay.norm2, chunks(n))
		t.pool.run(len(t.mb.seqs)*c.KVHeads, s.attnBack)
		t.pool.run(chunks(n), s.qkvBack)
		t.addGain(lay.norm1, chunks(n))
		s.blocks = s.blocks[:0]
		t.addBlocks(a.dgu, 2*c.FFN, c.Dim, a.h2P, lay.gateUp)
		t.addBlocks(a.dx, c.Dim, c.FFN, a.actP, lay.down)
		t.addBlocks(a.dqkv, c.QKVDim(), c.Dim, a.h1P, lay.qkv)
		t.addBlocks(a.dmid, c.Dim, c.Dim, a.attP, lay.o)
		t.pool.run(len(s.blocks), s.weightBack)
		a.dx, a.dnext = a.dnext, a.dx
	}
	d := c.Dim
	for i, id := range t.mb.ids {
		t.kn.Axpy(t.grad[t.model.lay.embed+int(id)*d:][:d], a.dx[i*d:][:d], 1)
	}
}

// addGain sums the chunks' partial gain gradients, in order.
func (t *Trainer) addGain(at, parts int) {
	d := t.cfg.Dim
	for i := range parts {
		t.kn.Axpy(t.grad[at:at+d], t.act.gain[i*d:][:d], 1)
	}
}

const gradRows = 48

func (t *Trainer) addBlocks(dy []float32, m, n int, b []float32, to int) {
	for r := 0; r < m; r += gradRows {
		t.tasks.blocks = append(t.tasks.blocks,
			gradBlock{a: dy[r:], cs: m, m: min(gradRows, m-r), n: n, b: b, to: t.grad[to+r*n:]})
	}
}

func (t *Trainer) weightBack(_, i int) {
	g, n := &t.tasks.blocks[i], len(t.mb.ids)
	t.kn.Mul(g.m, g.n, n, g.a, 1, g.cs, g.b, n, 0, g.to, g.n, true)
}

// normBack adds to dx (after taking over res, if given) the gradient of x through its normalisation, given dy, the
// gradient of the normalised and scaled row, and adds the gain's gradient to gain. dy is overwritten.
func (t *Trainer) normBack(dx, res, dy, x, w []float32, rstd float32, gain []float32) {
	t.kn.MulAdd(gain, dy, x, rstd)
	t.kn.MulScale(dy, dy, w, rstd)
	k := t.kn.Dot(dy, x) * rstd * rstd / float32(len(x))
	if res == nil {
		t.kn.ScaleAdd(dx, dy, x, 1, -k)
		return
	}
	t.kn.ScaleAdd(dx, dy, res, 1, 1)
	t.kn.Axpy(dx, x, -k)
}

// rowsBack goes back through the feed-forward block and the attention projection for one chunk of rows.
func (t *Trainer) rowsBack(worker, i int) {
	c, a, ws, l := t.cfg, &t.act, t.ws[worker], t.tasks.layer
	p, b := &t.w.layers[l], &t.back.layers[l]
	total := len(t.mb.ids)
	r, n := chunk(i, total)
	d, f := c.Dim, c.FFN
	t.kn.Mul(n, f, d, a.dx[r*d:], d, 1, b.down, d, 0, ws.dact, f, false)
	for j := range n {
		gu, dgu := a.gu[l][(r+j)*2*f:][:2*f], a.dgu[(r+j)*2*f:][:2*f]
		t.kn.SiLUGrad(ws.act[j*f:][:f], dgu[:f], dgu[f:], gu[:f], gu[f:], ws.dact[j*f:][:f])
		t.kn.MulScale(ws.h[j*d:][:d], a.xmid[l][(r+j)*d:][:d], p.norm2, a.rstd2[l][r+j])
	}
	t.kn.PackNRows(a.actP, ws.act, total, r, n, f, f)
	t.kn.PackNRows(a.h2P, ws.h, total, r, n, d, d)
	t.kn.PackNRows(a.attP, a.att[l][r*d:], total, r, n, d, d)
	t.kn.Mul(n, d, 2*f, a.dgu[r*2*f:], 2*f, 1, b.gateUp, 2*f, 0, ws.dh, d, false)
	gain := a.gain[i*d:][:d]
	clear(gain)
	for j := range n {
		row := (r + j) * d
		t.normBack(a.dmid[row:][:d], a.dx[row:][:d], ws.dh[j*d:][:d], a.xmid[l][row:][:d], p.norm2, a.rstd2[l][r+j], gain)
	}
	t.kn.Mul(n, d, d, a.dmid[r*d:], d, 1, b.o, d, 0, a.datt[r*d:], d, false)
}

// qkvBack goes back through the rotation, the projections and the first norm for one chunk of rows.
func (t *Trainer) qkvBack(worker, i int) {
	c, a, ws, l := t.cfg, &t.act, t.ws[worker], t.tasks.layer
	p, b := &t.w.layers[l], &t.back.layers[l]
	total := len(t.mb.ids)
	r, n := chunk(i, total)
	d, w, hd := c.Dim, c.QKVDim(), c.HeadDim()
	scale := t.w.qScale()
	for j := range n {
		pos, row := int(t.mb.pos[r+j]), a.dqkv[(r+j)*w:][:w]
		for h := range c.Heads {
			t.w.rope.rotate(row[h*hd:][:hd], pos, scale, -1)
		}
		for h := range c.KVHeads {
			t.w.rope.rotate(row[d+h*hd:][:hd], pos, 1, -1)
		}
		t.kn.MulScale(ws.h[j*d:][:d], a.x[l][(r+j)*d:][:d], p.norm1, a.rstd1[l][r+j])
	}
	t.kn.PackNRows(a.h1P, ws.h, total, r, n, d, d)
	t.kn.Mul(n, d, w, a.dqkv[r*w:], w, 1, b.qkv, w, 0, ws.dh, d, false)
	gain := a.gain[i*d:][:d]
	clear(gain)
	for j := range n {
		row := (r + j) * d
		t.normBack(a.dnext[row:][:d], a.dmid[row:][:d], ws.dh[j*d:][:d], a.x[l][row:][:d], p.norm1, a.rstd1[l][r+j], gain)
	}
}

// attnBack computes the gradients of queries, keys and values of one sequence and one key/value head. Probabilities are
// computed again from the stored statistics, a block of query rows at a time.
func (t *Trainer) attnBack(worker, i int) {
	c, a, ws, l := t.cfg, &t.act, t.ws[worker], t.tasks.layer
	seq, g := t.mb.seqs[i/c.KVHeads], i%c.KVHeads
	hd, w, d := c.HeadDim(), c.QKVDim(), c.Dim
	ws.ensure(c, seq.n)
	qkv, dqkv := a.qkv[l][seq.start*w:], a.dqkv[seq.start*w:]
	kAt, vAt := d+g*hd, d+c.KVDim()+g*hd
	t.kn.PackT(ws.kp, qkv[kAt:], seq.n, hd, w)
	t.kn.PackN(ws.kn, qkv[kAt:], seq.n, hd, w)
	t.kn.PackT(ws.vp, qkv[vAt:], seq.n, hd, w)
	dk, dv := ws.dk[:seq.n*hd], ws.dv[:seq.n*hd]
	clear(dk)
	clear(dv)
	group := c.Heads / c.KVHeads
	for h := g * group; h < (g+1)*group; h++ {
		for r := 0; r < seq.n; r += attnRows {
			n := min(attnRows, seq.n-r)
			t.attnBackBlock(ws, seq, l, h, r, n, qkv, dqkv, dk, dv)
		}
	}
	for j := range seq.n {
		copy(dqkv[j*w+kAt:][:hd], dk[j*hd:])
		copy(dqkv[j*w+vAt:][:hd], dv[j*hd:])
	}
}

func (t *Trainer) attnBackBlock(ws *trainSpace, seq seqSpan, l, h, r, n int, qkv, dqkv, dk, dv []float32) {
	c, a := t.cfg, &t.act
	hd, w, d := c.HeadDim(), c.QKVDim(), c.Dim
	keys := r + n
	pad := pad16(keys)
	q, do := qkv[r*w+h*hd:], a.datt[(seq.start+r)*d+h*hd:]
	t.kn.Mul(n, pad, hd, q, w, 1, ws.kp, hd, 0, ws.s1, pad, false)
	t.kn.Mul(n, pad, hd, do, d, 1, ws.vp, hd, 0, ws.s2, pad, false)
	for j := range n {
		lim := r + j + 1
		at := (seq.start+r+j)*c.Heads + h
		p, dp := ws.s1[j*pad:][:pad], ws.s2[j*pad:][:pad]
		t.kn.Exp(p[:lim], p[:lim], a.big[l][at])
		t.kn.ScaleAdd(p[:lim], p[:lim], p[:lim], a.inv[l][at], 0)
		clear(p[lim:])
		clear(dp[lim:])
		t.kn.SoftGrad(dp[:lim], p[:lim], dp[:lim], t.kn.Dot(p[:lim], dp[:lim]))
	}
	t.kn.Mul(n, hd, keys, ws.s2, pad, 1, ws.kn, seq.n, 0, dqkv[r*w+h*hd:], w, false)
	t.kn.PackN(ws.op, do, n, hd, d)
	t.kn.PackN(ws.qp, q, n, hd, w)
	t.kn.Mul(keys, hd, n, ws.s1, 1, pad, ws.op, n, 0, dv, hd, true)
	t.kn.Mul(keys, hd, n, ws.s2, 1, pad, ws.qp, n, 0, dk, hd, true)
}

// sqrtf is the square root in single precision.
func sqrtf(x float32) float32 { return float32(math.Sqrt(float64(x))) }
