package nn

import (
	"slices"

	"agentrl/internal/errs"
)

// Config is the architecture of a model (compute.md 2).
type Config struct {
	Name     string  `json:"name"`
	Vocab    int     `json:"vocab_size"`
	Dim      int     `json:"hidden_size"`
	Layers   int     `json:"num_hidden_layers"`
	Heads    int     `json:"num_attention_heads"`
	KVHeads  int     `json:"num_key_value_heads"`
	FFN      int     `json:"intermediate_size"`
	Context  int     `json:"max_position_embeddings"`
	RopeBase float64 `json:"rope_theta"`
	NormEps  float64 `json:"rms_norm_eps"`
}

// PresetNames lists the sizes Preset knows, smallest first.
func PresetNames() []string { return []string{"pico", "nano", "micro", "mini"} }

// Preset returns a named size with the given vocabulary; 0 means the size's own default.
func Preset(name string, vocab int) (Config, error) {
	c := Config{Name: name, RopeBase: 10000, NormEps: 1e-6, Vocab: 256, Context: 2048}
	switch name {
	case "pico":
		c.Dim, c.Layers, c.Heads, c.KVHeads, c.Vocab, c.Context = 64, 4, 4, 2, 1024, 512
	case "nano":
		c.Dim, c.Layers, c.Heads, c.KVHeads = 128, 5, 4, 2
	case "micro":
		c.Dim, c.Layers, c.Heads, c.KVHeads = 256, 6, 4, 2
	case "mini":
		c.Dim, c.Layers, c.Heads, c.KVHeads = 512, 8, 8, 4
	default:
		return Config{}, errs.Field("size", "unknown model size %q; allowed: %v", name, PresetNames())
	}
	if vocab != 0 {
		c.Vocab = vocab
	}
	c.FFN = 8 * c.Dim / 3 / 32 * 32
	return c, c.Validate()
}

// HeadDim is the width of one attention head.
func (c Config) HeadDim() int { return c.Dim / c.Heads }

// KVDim is the width of all keys of one position.
func (c Config) KVDim() int { return c.KVHeads * c.HeadDim() }

// QKVDim is the width of the fused query, key and value projection.
func (c Config) QKVDim() int { return c.Dim + 2*c.KVDim() }

// NumParams counts the trainable numbers; the head is tied to the embedding.
func (c Config) NumParams() int {
	return c.Vocab*c.Dim + c.Dim + c.Layers*(2*c.Dim+c.Dim*c.QKVDim()+c.Dim*c.Dim+3*c.Dim*c.FFN)
}

// Validate refuses shapes the engine cannot compute.
func (c Config) Validate() error {
	limits := []struct {
		field     string
		v, lo, hi int
	}{
		{"vocab_size", c.Vocab, 2, 1 << 20},
		{"hidden_size", c.Dim, 8, 1 << 14},
		{"num_hidden_layers", c.Layers, 1, 256},
		{"num_attention_heads", c.Heads, 1, 256},
		{"num_key_value_heads", c.KVHeads, 1, 256},
		{"intermediate_size", c.FFN, 8, 1 << 17},
		{"max_position_embeddings", c.Context, 2, 1 << 20},
	}
	for _, l := range limits {
		if l.v < l.lo || l.v > l.hi {
			return errs.Field(l.field, "%d is outside %d to %d", l.v, l.lo, l.hi)
		}
	}
	switch {
	case c.Dim%c.Heads != 0:
		return errs.Field("num_attention_heads", "hidden_size %d is not a multiple of %d heads", c.Dim, c.Heads)
	case c.HeadDim()%2 != 0:
		return errs.Field("hidden_size", "the head width %d must be even for rotary positions", c.HeadDim())
	case c.Heads%c.KVHeads != 0:
		return errs.Field("num_key_value_heads", "%d heads are not a multiple of %d key/value heads", c.Heads, c.KVHeads)
	case !(c.RopeBase > 1):
		return errs.Field("rope_theta", "%g must be above 1", c.RopeBase)
	case !(c.NormEps > 0 && c.NormEps < 1):
		return errs.Field("rms_norm_eps", "%g must be between 0 and 1", c.NormEps)
	}
	return nil
}

// ValidPreset says whether name is a known size.
func ValidPreset(name string) bool { return slices.Contains(PresetNames(), name) }
