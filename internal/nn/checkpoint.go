package nn

import (
	"strconv"

	"agentrl/internal/errs"
	"agentrl/internal/nn/safetensors"
)

// tensors gives parameters the form the file writer takes; the data is shared.
func tensors(ps []Param, prefix string) []safetensors.Tensor {
	out := make([]safetensors.Tensor, len(ps))
	for i, p := range ps {
		out[i] = safetensors.Tensor{Name: prefix + p.Name, Shape: p.Shape, Data: p.Data}
	}
	return out
}

// Save writes the weights under their Hugging Face names (compute.md 10), flushed to the disk. Equal weights and metadata
// give equal files.
func (m *Model) Save(path string, meta map[string]string) error {
	return safetensors.WriteFile(path, tensors(m.Params(), ""), meta)
}

// Load takes the weights of a file that holds every tensor of the model with its shape, and returns the file's metadata.
// On error the model is unchanged.
func (m *Model) Load(path string) (meta map[string]string, err error) {
	f, err := safetensors.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := takeTensors(m.Params(), f, "", len(f.Tensors)); err != nil {
		return nil, err
	}
	return f.Meta, nil
}

// LoadModel makes a model of the given architecture from a file.
func LoadModel(cfg Config, path string) (*Model, map[string]string, error) {
	m, err := NewModel(cfg, 0)
	if err != nil {
		return nil, nil, err
	}
	meta, err := m.Load(path)
	return m, meta, err
}

// takeTensors copies every parameter from the file, after all were found to fit. A file may hold a separate output head,
// which this architecture ties to the embedding; count is the number of tensors the file has.
func takeTensors(ps []Param, f *safetensors.File, prefix string, count int) error {
	for _, p := range ps {
		t, ok := f.Get(prefix + p.Name)
		if !ok {
			return errs.New(errs.Invalid, "the file has no tensor %q", prefix+p.Name)
		}
		if !sameShape(t.Shape, p.Shape) {
			return errs.New(errs.Invalid, "tensor %q has shape %v; the model needs %v", prefix+p.Name, t.Shape, p.Shape)
		}
	}
	if _, ok := f.Get("lm_head.weight"); ok {
		return errs.New(errs.Invalid, "the file has its own output head; only models with a tied head can be loaded")
	}
	if count != len(ps) && prefix == "" {
		return errs.New(errs.Invalid, "the file has %d tensors; the model needs exactly %d", count, len(ps))
	}
	for _, p := range ps {
		t, _ := f.Get(prefix + p.Name)
		copy(p.Data, t.Data)
	}
	return nil
}

func sameShape(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

const (
	momentOne = "exp_avg."
	momentTwo = "exp_avg_sq."
	stepKey   = "step"
)

// SaveOptimizer writes both moments and the step count.
func (t *Trainer) SaveOptimizer(path string) error {
	step, m, v := t.OptimizerState()
	all := append(tensors(m, momentOne), tensors(v, momentTwo)...)
	return safetensors.WriteFile(path, all, map[string]string{stepKey: strconv.FormatInt(step, 10)})
}

// LoadOptimizer restores what SaveOptimizer wrote; on error the state may be partly changed and must not be used.
func (t *Trainer) LoadOptimizer(path string) error {
	f, err := safetensors.ReadFile(path)
	if err != nil {
		return err
	}
	step, err := strconv.ParseInt(f.Meta[stepKey], 10, 64)
	if err != nil || step < 0 {
		return errs.New(errs.Invalid, "the optimizer file has no valid step count: %q", f.Meta[stepKey])
	}
	_, m, v := t.OptimizerState()
	if err := takeTensors(m, f, momentOne, len(f.Tensors)); err != nil {
		return err
	}
	if err := takeTensors(v, f, momentTwo, len(f.Tensors)); err != nil {
		return err
	}
	t.adam.step = step
	return nil
}
