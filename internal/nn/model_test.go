package nn

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentrl/internal/nn/safetensors"
)

func TestPresetSizes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int{"pico": 238144, "nano": 894336, "micro": 4345088, "mini": 22946304} {
		c, err := Preset(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		m := mustModel(t, c, 1)
		n := 0
		for _, p := range m.Params() {
			n += len(p.Data)
		}
		if n != c.NumParams() || n != want {
			t.Errorf("%s has %d parameters, NumParams says %d, want %d", name, n, c.NumParams(), want)
		}
	}
	if c, err := Preset("pico", 96); err != nil || c.Vocab != 96 {
		t.Errorf("vocabulary: %+v, %v", c, err)
	}
	if _, err := Preset("huge", 0); err == nil || !strings.Contains(err.Error(), "pico") {
		t.Errorf("unknown size: %v", err)
	}
}

func TestConfigValidation(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"vocab": func(c *Config) { c.Vocab = 1 }, "heads": func(c *Config) { c.Heads = 5 }, "kv": func(c *Config) { c.KVHeads = 3 },
		"odd head": func(c *Config) { c.Dim, c.Heads, c.KVHeads = 20, 4, 2 }, "layers": func(c *Config) { c.Layers = 0 },
		"context": func(c *Config) { c.Context = 0 }, "rope": func(c *Config) { c.RopeBase = 0 }, "eps": func(c *Config) { c.NormEps = 0 },
	} {
		c := tinyConfig()
		change(&c)
		if _, err := NewModel(c, 1); err == nil {
			t.Errorf("%s: no error for %+v", name, c)
		}
	}
}

func TestSeedFixesTheWeights(t *testing.T) {
	t.Parallel()
	a, b, c := mustModel(t, tinyConfig(), 1), mustModel(t, tinyConfig(), 1), mustModel(t, tinyConfig(), 2)
	if a.Digest() != b.Digest() || a.Digest() == c.Digest() {
		t.Error("the seed does not fix the weights")
	}
	d := c.Clone()
	if err := d.CopyFrom(a); err != nil || d.Digest() != a.Digest() || c.Digest() == a.Digest() {
		t.Errorf("copying: %v", err)
	}
	other := tinyConfig()
	other.Layers = 1
	if d.CopyFrom(mustModel(t, other, 1)) == nil {
		t.Error("another architecture was copied")
	}
}

func TestSaveAndLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := mustModel(t, tinyConfig(), 1)
	x, y := filepath.Join(dir, "x"), filepath.Join(dir, "y")
	for _, p := range []string{x, y} {
		if err := a.Save(p, map[string]string{"version": "3"}); err != nil {
			t.Fatal(err)
		}
	}
	bx, err := os.ReadFile(x)
	if err != nil {
		t.Fatal(err)
	}
	by, err := os.ReadFile(y)
	if err != nil || string(bx) != string(by) {
		t.Errorf("equal weights gave different files (%v)", err)
	}
	b, meta, err := LoadModel(tinyConfig(), x)
	if err != nil || b.Digest() != a.Digest() || meta["version"] != "3" {
		t.Errorf("loaded %v, %v", meta, err)
	}
	f, err := safetensors.ReadFile(x)
	if err != nil {
		t.Fatal(err)
	}
	k, ok := f.Get("model.layers.1.self_attn.k_proj.weight")
	if !ok || len(k.Shape) != 2 || k.Shape[0] != 12 || k.Shape[1] != 24 {
		t.Errorf("key projection: %v %v", k.Shape, ok)
	}
	other := tinyConfig()
	other.FFN = 48
	if _, _, err := LoadModel(other, x); err == nil || !strings.Contains(err.Error(), "shape") {
		t.Errorf("another shape: %v", err)
	}
	if err := os.WriteFile(y, bx[:len(bx)-4], 0o600); err != nil {
		t.Fatal(err)
	}
	before := b.Digest()
	if _, err := b.Load(y); err == nil || b.Digest() != before {
		t.Errorf("a truncated file: %v", err)
	}
}
