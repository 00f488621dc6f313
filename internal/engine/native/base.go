package native

import (
	"agentrl/internal/errs"
	"agentrl/internal/nn"
	"agentrl/internal/tokenizer"
)

// base is where a model comes from: a preset or a directory.
type base struct {
	config nn.Config
	tok    *tokenizer.Tokenizer
	dir    string // empty for presets
}

// openBase finds out the architecture without allocating the model.
func openBase(opt *Options) (base, error) {
	if !nn.ValidPreset(opt.Base) {
		return openDir(opt)
	}
	if opt.Tokenizer == nil {
		return base{}, errs.New(errs.Invalid, "a preset model needs a tokenizer")
	}
	c, err := nn.Preset(opt.Base, roundVocab(opt.Tokenizer.VocabSize()))
	if err != nil {
		return base{}, err
	}
	if opt.MaxContext > 0 {
		c.Context = opt.MaxContext
	}
	return base{config: c, tok: opt.Tokenizer}, c.Validate()
}

// roundVocab rounds up to a multiple of 32, as the kernels like it; the extra ids are never trained on.
func roundVocab(n int) int { return (n + 31) / 32 * 32 }

func (b base) load(seed uint64) (*nn.Model, error) {
	if b.dir != "" {
		return readModel(b.dir, b.config)
	}
	return nn.NewModel(b.config, seed)
}
