package nn

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"

	"agentrl/internal/errs"
	"agentrl/internal/nn/kernel"
)

// Param is one named tensor, row-major; Data is the model's own memory.
type Param struct {
	Name  string // Hugging Face name (compute.md 10)
	Shape []int
	Data  []float32
}

// layout says where the tensors of a configuration lie in its flat array.
type layout struct {
	size   int
	embed  int
	norm   int
	layers []layerLayout
}

// layerLayout holds offsets; q, k, v stand next to each other, and gate and up do, so that each group is one matrix.
type layerLayout struct {
	norm1, qkv, o, norm2, gateUp, down int
}

func layoutOf(c Config) layout {
	l := layout{layers: make([]layerLayout, c.Layers)}
	take := func(n int) int { at := l.size; l.size += n; return at }
	l.embed = take(c.Vocab * c.Dim)
	for i := range l.layers {
		l.layers[i] = layerLayout{
			norm1:  take(c.Dim),
			qkv:    take(c.QKVDim() * c.Dim),
			o:      take(c.Dim * c.Dim),
			norm2:  take(c.Dim),
			gateUp: take(2 * c.FFN * c.Dim),
			down:   take(c.Dim * c.FFN),
		}
	}
	l.norm = take(c.Dim)
	return l
}

// params names the tensors of a flat array laid out for c.
func params(c Config, flat []float32) []Param {
	l := layoutOf(c)
	var ps []Param
	add := func(name string, at int, shape ...int) int {
		n := 1
		for _, s := range shape {
			n *= s
		}
		ps = append(ps, Param{Name: name, Shape: shape, Data: flat[at : at+n : at+n]})
		return at + n
	}
	add("model.embed_tokens.weight", l.embed, c.Vocab, c.Dim)
	for i, ll := range l.layers {
		pre := fmt.Sprintf("model.layers.%d.", i)
		add(pre+"input_layernorm.weight", ll.norm1, c.Dim)
		at := add(pre+"self_attn.q_proj.weight", ll.qkv, c.Dim, c.Dim)
		at = add(pre+"self_attn.k_proj.weight", at, c.KVDim(), c.Dim)
		add(pre+"self_attn.v_proj.weight", at, c.KVDim(), c.Dim)
		add(pre+"self_attn.o_proj.weight", ll.o, c.Dim, c.Dim)
		add(pre+"post_attention_layernorm.weight", ll.norm2, c.Dim)
		at = add(pre+"mlp.gate_proj.weight", ll.gateUp, c.FFN, c.Dim)
		add(pre+"mlp.up_proj.weight", at, c.FFN, c.Dim)
		add(pre+"mlp.down_proj.weight", ll.down, c.Dim, c.FFN)
	}
	add("model.norm.weight", l.norm, c.Dim)
	return ps
}

// Model is a set of weights. It is not safe for concurrent use while a Trainer steps it.
type Model struct {
	cfg  Config
	lay  layout
	flat []float32
	kn   kernel.Kernel
}

// initStd is the deviation of fresh weights: 1/sqrt(D), which is 0.02 at the widths that large models have. At D = 64
// a deviation of 0.02 leaves tokens so alike that training sits on a plateau of word frequencies for millions of tokens
// (docs/learning.md).
func initStd(cfg Config) float64 { return 1 / math.Sqrt(float64(cfg.Dim)) }

// NewModel draws weights N(0, 1/D), residual projections scaled by 1/sqrt(2*layers), norms 1; seed fixes them.
func NewModel(cfg Config, seed uint64) (*Model, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	kn, err := kernel.FromEnv()
	if err != nil {
		return nil, err
	}
	m := &Model{cfg: cfg, lay: layoutOf(cfg), kn: kn}
	m.flat = make([]float32, m.lay.size)
	rng := rand.New(rand.NewPCG(seed, 0x6e6e))
	normal := func(at, n int, std float64) {
		for i := at; i < at+n; i++ {
			m.flat[i] = float32(rng.NormFloat64() * std)
		}
	}
	ones := func(at int) {
		for i := at; i < at+cfg.Dim; i++ {
			m.flat[i] = 1
		}
	}
	std := initStd(cfg)
	res := std / math.Sqrt(2*float64(cfg.Layers))
	normal(m.lay.embed, cfg.Vocab*cfg.Dim, std)
	for _, l := range m.lay.layers {
		ones(l.norm1)
		normal(l.qkv, cfg.QKVDim()*cfg.Dim, std)
		normal(l.o, cfg.Dim*cfg.Dim, res)
		ones(l.norm2)
		normal(l.gateUp, 2*cfg.FFN*cfg.Dim, std)
		normal(l.down, cfg.Dim*cfg.FFN, res)
	}
	ones(m.lay.norm)
	return m, nil
}

// Config returns the architecture.
func (m *Model) Config() Config { return m.cfg }

// Params lists the tensors in a fixed order; writing to Data changes the model.
func (m *Model) Params() []Param { return params(m.cfg, m.flat) }

// Clone copies the model.
func (m *Model) Clone() *Model {
	return &Model{cfg: m.cfg, lay: m.lay, kn: m.kn, flat: append([]float32(nil), m.flat...)}
}

// CopyFrom takes over the weights of a model of the same architecture.
func (m *Model) CopyFrom(o *Model) error {
	a, b := m.cfg, o.cfg
	a.Name, b.Name = "", ""
	if a != b {
		return errs.New(errs.Invalid, "the models have different architectures: %+v and %+v", m.cfg, o.cfg)
	}
	copy(m.flat, o.flat)
	return nil
}

// Digest is the SHA-256 of the architecture and the weights, in hex.
func (m *Model) Digest() string { return digest(m.cfg, m.flat) }

func digest(c Config, flat []float32) string {
	h := sha256.New()
	c.Name = ""
	fmt.Fprintf(h, "%+v\n", c)
	buf := make([]byte, 0, 1<<16)
	for len(flat) > 0 {
		n := min(len(flat), cap(buf)/4)
		buf = buf[:0]
		for _, v := range flat[:n] {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(v))
		}
		h.Write(buf)
		flat = flat[n:]
	}
	return hex.EncodeToString(h.Sum(nil))
}
