package native

import (
	"encoding/json"
	"os"
	"path/filepath"

	"agentrl/internal/errs"
	"agentrl/internal/nn"
	"agentrl/internal/tokenizer"
)

// maxConfig bounds config.json in bytes.
const maxConfig = 1 << 20

// configFile is config.json as the Llama family writes it.
type configFile struct {
	nn.Config
	Architectures []string        `json:"architectures"`
	ModelType     string          `json:"model_type"`
	HiddenAct     string          `json:"hidden_act"`
	Tied          bool            `json:"tie_word_embeddings"`
	DType         string          `json:"torch_dtype"`
	AttentionBias bool            `json:"attention_bias"`
	HeadDim       int             `json:"head_dim,omitempty"`
	RopeScaling   json.RawMessage `json:"rope_scaling"`
}

func configJSON(c nn.Config) ([]byte, error) {
	return json.MarshalIndent(configFile{
		Config: c, Architectures: []string{"LlamaForCausalLM"}, ModelType: "llama", HiddenAct: "silu", Tied: true,
		DType: "float32",
	}, "", "  ")
}

// readConfig reads config.json and refuses what the model cannot compute.
func readConfig(dir string) (nn.Config, error) {
	path := filepath.Join(dir, "config.json")
	st, err := os.Stat(path)
	if err != nil {
		return nn.Config{}, errs.Wrap(errs.NotFound, err, "the directory %q holds no model: its config.json cannot be read", dir)
	}
	if st.Size() > maxConfig {
		return nn.Config{}, errs.New(errs.TooLarge, "config.json has %d bytes; at most %d are read", st.Size(), maxConfig)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nn.Config{}, errs.Wrap(errs.NotFound, err, "config.json cannot be read")
	}
	return parseConfig(b)
}

func parseConfig(b []byte) (nn.Config, error) {
	var f configFile
	if err := json.Unmarshal(b, &f); err != nil {
		return nn.Config{}, errs.Wrap(errs.Invalid, err, "config.json is not the expected JSON")
	}
	if f.KVHeads == 0 {
		f.KVHeads = f.Heads
	}
	if err := f.Validate(); err != nil {
		return nn.Config{}, err
	}
	refuse := func(what string) error {
		return errs.New(errs.Invalid, "config.json asks for %s; supported are models of type llama with silu, tied embeddings, no attention bias and plain rotary positions", what)
	}
	var err error
	switch scaling := string(f.RopeScaling); {
	case f.ModelType != "llama":
		err = refuse("model type " + f.ModelType)
	case f.HiddenAct != "silu":
		err = refuse("activation " + f.HiddenAct)
	case !f.Tied:
		err = refuse("an output head of its own")
	case f.AttentionBias:
		err = refuse("attention bias")
	case scaling != "" && scaling != "null":
		err = refuse("scaled rotary positions")
	case f.HeadDim != 0 && f.HeadDim != f.Config.HeadDim():
		err = refuse("a head width that is not hidden size divided by heads")
	}
	return f.Config, err
}

// openDir takes architecture and tokenizer from a directory.
func openDir(opt *Options) (base, error) {
	if opt.Base == "" {
		return base{}, errs.Field("policy.base", "it is empty; allowed are %v and a directory of safetensors", nn.PresetNames())
	}
	if st, err := os.Stat(opt.Base); err != nil || !st.IsDir() {
		return base{}, errs.Field("policy.base", "%q is neither a preset (%v) nor a directory", opt.Base, nn.PresetNames())
	}
	c, err := readConfig(opt.Base)
	if err != nil {
		return base{}, err
	}
	tok := opt.Tokenizer
	if tok == nil {
		if tok, err = tokenizer.ReadFile(filepath.Join(opt.Base, "tokenizer.json")); err != nil {
			return base{}, err
		}
	}
	if tok.VocabSize() > c.Vocab {
		return base{}, errs.New(errs.Invalid, "the tokenizer has %d ids, the model only %d", tok.VocabSize(), c.Vocab)
	}
	if opt.MaxContext > c.Context {
		return base{}, errs.New(errs.Invalid, "a context of %d tokens is asked for; the model was made for %d", opt.MaxContext, c.Context)
	}
	if opt.MaxContext > 0 {
		c.Context = opt.MaxContext
	}
	return base{config: c, tok: tok, dir: opt.Base}, nil
}
