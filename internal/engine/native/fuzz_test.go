package native

import (
	"path/filepath"
	"testing"

	"agentrl/internal/nn"
)

func FuzzConfig(f *testing.F) {
	c, err := nn.Preset("pico", 0)
	if err != nil {
		f.Fatal(err)
	}
	b, err := configJSON(c)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"model_type":"llama","hidden_size":1e9}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := parseConfig(b)
		if err == nil && c.Validate() != nil {
			t.Fatal("an invalid architecture was accepted")
		}
	})
}

func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"weight_map":{"a":"x.safetensors"}}`))
	f.Add([]byte(`{"weight_map":{"a":"../x"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		files, err := parseIndex(b)
		if err != nil {
			return
		}
		for _, name := range files {
			if filepath.Base(name) != name || !filepath.IsLocal(name) {
				t.Fatalf("%q leaves the directory", name)
			}
		}
	})
}
