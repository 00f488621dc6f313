package native

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"agentrl/internal/errs"
	"agentrl/internal/nn"
	"agentrl/internal/nn/safetensors"
)

const (
	indexFile = "model.safetensors.index.json"
	maxIndex  = 16 << 20 // bytes
	maxShards = 1000
)

// readModel reads model.safetensors, or the files that model.safetensors.index.json lists in its place.
func readModel(dir string, c nn.Config) (*nn.Model, error) {
	m, _, err := nn.LoadModel(c, filepath.Join(dir, modelFile))
	if !errors.Is(err, fs.ErrNotExist) {
		return m, err
	}
	files, ierr := readIndex(dir)
	if errors.Is(ierr, fs.ErrNotExist) {
		return nil, errs.Wrap(errs.NotFound, err, "the model directory has neither %s nor %s", modelFile, indexFile)
	}
	if ierr != nil {
		return nil, ierr
	}
	if m, err = nn.NewModel(c, 0); err != nil {
		return nil, err
	}
	missing := map[string]nn.Param{}
	for _, p := range m.Params() {
		missing[p.Name] = p
	}
	for _, name := range files {
		f, err := safetensors.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		for _, t := range f.Tensors {
			p, ok := missing[t.Name]
			if !ok || !slices.Equal(p.Shape, t.Shape) {
				return nil, errs.New(errs.Invalid, "%s: tensor %q of shape %v is unknown, there twice or of another shape", name, t.Name, t.Shape)
			}
			copy(p.Data, t.Data)
			delete(missing, t.Name)
		}
	}
	if len(missing) > 0 {
		return nil, errs.New(errs.Invalid, "%d tensors are missing, the first is %q", len(missing), slices.Min(slices.Collect(maps.Keys(missing))))
	}
	return m, nil
}

// readIndex returns the files of a model that was stored in pieces.
func readIndex(dir string) ([]string, error) {
	path := filepath.Join(dir, indexFile)
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Size() > maxIndex {
		return nil, errs.New(errs.TooLarge, "%s has %d bytes; at most %d are read", indexFile, st.Size(), maxIndex)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseIndex(b)
}

func parseIndex(b []byte) ([]string, error) {
	var index struct {
		Weights map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "%s is not the expected JSON", indexFile)
	}
	seen := map[string]bool{}
	for _, f := range index.Weights {
		if f != filepath.Base(f) || !filepath.IsLocal(f) {
			return nil, errs.New(errs.Invalid, "%s names the file %q; only names in the same directory are allowed", indexFile, f)
		}
		seen[f] = true
	}
	if len(seen) == 0 || len(seen) > maxShards {
		return nil, errs.New(errs.Invalid, "%s names %d files; allowed are 1 to %d", indexFile, len(seen), maxShards)
	}
	return slices.Sorted(maps.Keys(seen)), nil
}
