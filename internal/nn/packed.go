package nn

import (
	"math"

	"agentrl/internal/nn/kernel"
)

// Packed is an immutable weight set of one version, laid out for the kernels; safe for concurrent use.
type Packed struct {
	cfg    Config
	kn     kernel.Kernel
	rope   *ropeTable
	embed  []float32 // [V, D]
	norm   []float32 // [D]
	head   []float32 // packed D x V
	layers []packedLayer
	digest string
}

type packedLayer struct {
	norm1, norm2         []float32
	qkv, o, gateUp, down []float32 // packed, inputs x outputs
}

// Pack lays out the model's weights as they are now.
func (m *Model) Pack() *Packed {
	p := newPacked(m.cfg, m.kn)
	p.load(m)
	p.digest = m.Digest()
	return p
}

func newPacked(c Config, kn kernel.Kernel) *Packed {
	d, pl := c.Dim, kernel.PackedLen
	p := &Packed{
		cfg: c, kn: kn, rope: newRopeTable(c),
		embed: make([]float32, c.Vocab*d), norm: make([]float32, d), head: make([]float32, pl(d, c.Vocab)),
		layers: make([]packedLayer, c.Layers),
	}
	for i := range p.layers {
		p.layers[i] = packedLayer{
			norm1: make([]float32, d), norm2: make([]float32, d),
			qkv: make([]float32, pl(d, c.QKVDim())), o: make([]float32, pl(d, d)),
			gateUp: make([]float32, pl(d, 2*c.FFN)), down: make([]float32, pl(c.FFN, d)),
		}
	}
	return p
}

// load takes over the weights of m in place; only for a set nobody else has seen.
func (p *Packed) load(m *Model) {
	c, d := p.cfg, p.cfg.Dim
	copy(p.embed, m.flat[m.lay.embed:])
	copy(p.norm, m.flat[m.lay.norm:])
	p.kn.PackT(p.head, p.embed, c.Vocab, d, d)
	for i, l := range m.lay.layers {
		pl := &p.layers[i]
		copy(pl.norm1, m.flat[l.norm1:])
		copy(pl.norm2, m.flat[l.norm2:])
		p.kn.PackT(pl.qkv, m.flat[l.qkv:], c.QKVDim(), d, d)
		p.kn.PackT(pl.o, m.flat[l.o:], d, d, d)
		p.kn.PackT(pl.gateUp, m.flat[l.gateUp:], 2*c.FFN, d, d)
		p.kn.PackT(pl.down, m.flat[l.down:], d, c.FFN, c.FFN)
	}
}

// Config returns the architecture.
func (p *Packed) Config() Config { return p.cfg }

// Digest equals the digest of the model it was packed from.
func (p *Packed) Digest() string { return p.digest }

// Kernel names the arithmetic path, "avx2" or "generic".
func (p *Packed) Kernel() string { return p.kn.Name() }

// Bytes is the memory the weight set holds.
func (p *Packed) Bytes() int64 {
	n := len(p.embed) + len(p.norm) + len(p.head)
	for _, l := range p.layers {
		n += len(l.norm1) + len(l.norm2) + len(l.qkv) + len(l.o) + len(l.gateUp) + len(l.down)
	}
	return 4 * int64(n)
}

// ropeTable holds the rotations of every position: cos and sin are [context, headDim/2].
type ropeTable struct {
	half     int
	cos, sin []float32
}

func newRopeTable(c Config) *ropeTable {
	h := c.HeadDim() / 2
	r := &ropeTable{half: h, cos: make([]float32, c.Context*h), sin: make([]float32, c.Context*h)}
	for i := range h {
		f := math.Pow(c.RopeBase, -float64(i)/float64(h))
		for pos := range c.Context {
			s, co := math.Sincos(float64(pos) * f)
			r.cos[pos*h+i], r.sin[pos*h+i] = float32(co), float32(s)
		}
	}
	return r
}

// rotate turns one head's vector to position pos and scales it; dir -1 turns back.
func (r *ropeTable) rotate(x []float32, pos int, scale, dir float32) {
	h := r.half
	cos, sin := r.cos[pos*h:][:h], r.sin[pos*h:][:h]
	a, b := x[:h], x[h:][:h]
	for i, c := range cos {
		s := dir * sin[i]
		u, v := a[i], b[i]
		a[i] = scale * (float32(u*c) - float32(v*s))
		b[i] = scale * (float32(v*c) + float32(u*s))
	}
}
