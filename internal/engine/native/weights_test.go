package native

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"agentrl/internal/nn/safetensors"
)

// shards saves the model of e in two files with an index.
func shards(t *testing.T, e *Engine) string {
	t.Helper()
	dir := save(t, e, nil)
	f, err := safetensors.ReadFile(filepath.Join(dir, modelFile))
	if err != nil {
		t.Fatal(err)
	}
	index := map[string]map[string]string{"weight_map": {}}
	half := len(f.Tensors) / 2
	for name, ts := range map[string][]safetensors.Tensor{"a.safetensors": f.Tensors[:half], "b.safetensors": f.Tensors[half:]} {
		if err := safetensors.WriteFile(filepath.Join(dir, name), ts, nil); err != nil {
			t.Fatal(err)
		}
		for _, x := range ts {
			index["weight_map"][x.Name] = name
		}
	}
	writeJSON(t, filepath.Join(dir, indexFile), index)
	if err := os.Remove(filepath.Join(dir, modelFile)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestModelInPieces(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	train(t, e, 1)
	m, err := readModel(shards(t, e), e.Config())
	if err != nil {
		t.Fatal(err)
	}
	if m.Digest() != digest(t, e) {
		t.Error("the weights differ")
	}
	for name, change := range map[string]func(dir string){
		"no index":    func(dir string) { _ = os.Remove(filepath.Join(dir, indexFile)) },
		"bad index":   func(dir string) { writeJSON(t, filepath.Join(dir, indexFile), []int{1}) },
		"empty index": func(dir string) { writeJSON(t, filepath.Join(dir, indexFile), map[string]any{}) },
		"other folder": func(dir string) {
			writeJSON(t, filepath.Join(dir, indexFile), map[string]any{"weight_map": map[string]string{"x": "../a.safetensors"}})
		},
		"piece missing": func(dir string) { _ = os.Remove(filepath.Join(dir, "a.safetensors")) },
		"piece unnamed": func(dir string) {
			writeJSON(t, filepath.Join(dir, indexFile), map[string]any{"weight_map": map[string]string{"x": "a.safetensors"}})
		},
		"piece of another model": func(dir string) {
			if err := safetensors.WriteFile(filepath.Join(dir, "a.safetensors"), []safetensors.Tensor{{Name: "x", Shape: []int{1}, Data: []float32{1}}}, nil); err != nil {
				t.Fatal(err)
			}
		},
	} {
		dir := shards(t, e)
		change(dir)
		if _, err := readModel(dir, e.Config()); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}
