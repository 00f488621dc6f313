package native

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentrl/internal/engine"
	"agentrl/internal/errs"
	"agentrl/internal/policy"
)

func digest(t testing.TB, e *Engine) string {
	t.Helper()
	return e.model.Digest()
}

func save(t testing.TB, e *Engine, keep map[string]engine.Version) string {
	t.Helper()
	dir := t.TempDir()
	if err := e.Save(t.Context(), dir, keep); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestResumeEqualsUninterrupted(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	train(t, e, 1)
	stale := publish(t, e, 1)
	if err := e.SetReference(t.Context()); err != nil {
		t.Fatal(err)
	}
	train(t, e, 2)
	publish(t, e, 2)
	dir := save(t, e, map[string]engine.Version{"stale": 1, "current": 2})
	prompt := policy.Prompt{IDs: randomIDs(rand.New(rand.NewPCG(7, 9)), 20), Stops: noStop}
	s := policy.Sampling{Temperature: 1, MaxNewTokens: 10, Seed: 3}
	want := generate(t, stale, prompt, s)
	batch := []engine.Datum{{Tokens: prompt.IDs}}
	wantRef, err := e.ForwardReference(t.Context(), batch, 1)
	if err != nil {
		t.Fatal(err)
	}
	train(t, e, 3)
	train(t, e, 4)

	r := newEngine(t, func(o *Options) { o.Seed, o.Threads = 99, 1 })
	publish(t, r, 7)
	train(t, r, 9)
	kept, err := r.Load(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(kept, map[string]engine.Version{"stale": 1, "current": 2}) {
		t.Errorf("kept %v", kept)
	}
	if _, err := r.Sampler(7); errs.CodeOf(err) != errs.NotFound {
		t.Errorf("a version of before the load is still there: %v", err)
	}
	p, err := r.Sampler(kept["stale"])
	if err != nil {
		t.Fatal(err)
	}
	got := generate(t, p, prompt, s)
	if err := sameCompletion(got, want); err != nil || got.Digest != want.Digest {
		t.Errorf("the stale version writes otherwise after resuming: %v", err)
	}
	ref, err := r.ForwardReference(t.Context(), batch, 1)
	if err != nil || !slices.Equal(ref[0], wantRef[0]) {
		t.Errorf("the reference changed: %v", err)
	}
	train(t, r, 3)
	train(t, r, 4)
	if digest(t, r) != digest(t, e) {
		t.Error("resumed training gives other weights than uninterrupted training")
	}
}

func TestCheckpointsAreEqualForEqualState(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	publish(t, e, 0)
	keep := map[string]engine.Version{"stale": 0}
	a, b := save(t, e, keep), save(t, e, keep)
	names, err := os.ReadDir(a)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range names {
		got = append(got, n.Name())
		x, err := os.ReadFile(filepath.Join(a, n.Name()))
		if err != nil {
			t.Fatal(err)
		}
		y, err := os.ReadFile(filepath.Join(b, n.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, y) {
			t.Errorf("%s differs", n.Name())
		}
	}
	if want := []string{"config.json", "model.safetensors", "optimizer.safetensors", "stale.safetensors", "tokenizer.json"}; !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
}

func TestOpenDirectory(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	train(t, e, 1)
	dir := save(t, e, nil)
	o, err := New(Options{Base: dir, MaxContext: 64, MicroBatchTokens: 512})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	if o.Config().Context != 64 || o.Tokenizer().VocabSize() != e.Tokenizer().VocabSize() {
		t.Errorf("context %d, vocabulary %d", o.Config().Context, o.Tokenizer().VocabSize())
	}
	batch := []engine.Datum{{Tokens: randomIDs(rand.New(rand.NewPCG(8, 9)), 20)}}
	a, err := e.Forward(t.Context(), batch, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := o.Forward(t.Context(), batch, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(a[0], b[0]) {
		t.Error("the opened model computes otherwise")
	}
}

func TestSaveRefuses(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	publish(t, e, 0)
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, f := range map[string]func() error{
		"not empty":   func() error { return e.Save(t.Context(), full, nil) },
		"missing":     func() error { return e.Save(t.Context(), filepath.Join(full, "none"), nil) },
		"reserved":    func() error { return e.Save(t.Context(), t.TempDir(), map[string]engine.Version{"model": 0}) },
		"path":        func() error { return e.Save(t.Context(), t.TempDir(), map[string]engine.Version{"../x": 0}) },
		"unpublished": func() error { return e.Save(t.Context(), t.TempDir(), map[string]engine.Version{"stale": 9}) },
	} {
		if err := f(); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestLoadRefusesAndChangesNothing(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	publish(t, e, 0)
	change := func(name string, f func([]byte) []byte) func(dir string) {
		return func(dir string) {
			path := filepath.Join(dir, name)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f(b), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	setConfig := func(key string, value any) func(dir string) {
		return change("config.json", func(b []byte) []byte {
			var m map[string]any
			if err := json.Unmarshal(b, &m); err != nil {
				t.Fatal(err)
			}
			m[key] = value
			b, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			return b
		})
	}
	half := func(b []byte) []byte { return b[:len(b)/2] }
	remove := func(name string) func(dir string) {
		return func(dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	before := digest(t, e)
	for name, f := range map[string]func(dir string){
		"no config":           remove("config.json"),
		"no model":            remove("model.safetensors"),
		"no optimizer":        remove("optimizer.safetensors"),
		"no tokenizer":        remove("tokenizer.json"),
		"config cut":          change("config.json", half),
		"model cut":           change("model.safetensors", half),
		"stale cut":           change("stale.safetensors", half),
		"optimizer cut":       change("optimizer.safetensors", half),
		"other tokenizer":     change("tokenizer.json", func(b []byte) []byte { return append(b, ' ') }),
		"stale w/o version":   change("stale.safetensors", func(b []byte) []byte { return bytes.Replace(b, []byte(`"version"`), []byte(`"versiom"`), 1) }),
		"other architecture":  setConfig("num_hidden_layers", 3),
		"bad architecture":    setConfig("num_hidden_layers", -3),
		"other model type":    setConfig("model_type", "qwen2"),
		"own head":            setConfig("tie_word_embeddings", false),
		"other activation":    setConfig("hidden_act", "gelu"),
		"bias":                setConfig("attention_bias", true),
		"scaled positions":    setConfig("rope_scaling", map[string]any{"factor": 2}),
		"other width of head": setConfig("head_dim", 999),
	} {
		dir := save(t, e, map[string]engine.Version{"stale": 0})
		f(dir)
		if _, err := e.Load(t.Context(), dir); err == nil {
			t.Errorf("%s was accepted", name)
		} else if strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: %v", name, err)
		}
		if digest(t, e) != before {
			t.Fatalf("%s: a refused checkpoint changed the weights", name)
		}
		if _, err := e.Sampler(0); err != nil {
			t.Fatalf("%s: a refused checkpoint released a version", name)
		}
	}
}
