package tokenizer

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentrl/internal/errs"
)

// sample is a tokenizer.json as a map, to be changed and written again.
func sample(t testing.TB) map[string]any {
	t.Helper()
	var b bytes.Buffer
	if err := trained(t, 300).Write(&b); err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func read(t testing.TB, m map[string]any) (*Tokenizer, error) {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return Read(bytes.NewReader(b))
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, want string
		change     func(m, model map[string]any)
	}{
		{"other model", "only BPE", func(_, model map[string]any) { model["type"] = "Unigram" }},
		{"byte fallback", "byte-level", func(_, model map[string]any) { model["byte_fallback"] = true }},
		{"dropout", "dropout", func(_, model map[string]any) { model["dropout"] = 0.1 }},
		{"missing byte", "all 256", func(_, model map[string]any) { delete(model["vocab"].(map[string]any), "a"); model["merges"] = []any{} }},
		{"id twice", "used twice", func(_, model map[string]any) { model["vocab"].(map[string]any)["a"] = 98 }},
		{"negative id", "outside", func(_, model map[string]any) { model["vocab"].(map[string]any)["a"] = -1 }},
		{"huge id", "outside", func(_, model map[string]any) { model["vocab"].(map[string]any)["zzz"] = 1 << 40 }},
		{"not byte-level", "byte-level", func(_, model map[string]any) { model["vocab"].(map[string]any)["a b"] = 999 }},
		{"merge of nothing", "not in the vocabulary", func(_, model map[string]any) { model["merges"] = []any{[]any{"zz", "a"}} }},
		{"merge shape", "neither", func(_, model map[string]any) { model["merges"] = []any{[]any{"a"}} }},
		{"merges missing", "not a list", func(_, model map[string]any) { delete(model, "merges") }},
		{"unknown pattern", "exactly", func(m, _ map[string]any) {
			m["pre_tokenizer"].(map[string]any)["pretokenizers"].([]any)[0].(map[string]any)["pattern"] = map[string]any{"Regex": "\\w+"}
		}},
		{"no pre-tokenizer", "pre_tokenizer", func(m, _ map[string]any) { m["pre_tokenizer"] = nil }},
		{"prefix space", "space", func(m, _ map[string]any) {
			m["pre_tokenizer"] = map[string]any{"type": "ByteLevel", "add_prefix_space": true}
		}},
		{"normalizer", "normalizer", func(m, _ map[string]any) { m["normalizer"] = map[string]any{"type": "Lowercase"} }},
		{"added id", "outside", func(m, _ map[string]any) {
			m["added_tokens"] = []any{map[string]any{"id": -5, "content": "<x>"}}
		}},
		{"wrong type", "JSON", func(m, _ map[string]any) { m["model"] = "BPE" }},
	}
	for _, tt := range tests {
		m := sample(t)
		tt.change(m, m["model"].(map[string]any))
		_, err := read(t, m)
		if err == nil || !strings.Contains(err.Error(), tt.want) || errs.CodeOf(err) != errs.Invalid {
			t.Errorf("%s: got %v, want a refusal with %q", tt.name, err, tt.want)
		}
	}
}

func TestReadOtherSpellings(t *testing.T) {
	t.Parallel()
	m := sample(t)
	tok, err := read(t, m)
	if err != nil {
		t.Fatal(err)
	}
	var merges []any
	for _, p := range m["model"].(map[string]any)["merges"].([]any) {
		p := p.([]any)
		merges = append(merges, p[0].(string)+" "+p[1].(string))
	}
	m["model"].(map[string]any)["merges"] = merges
	m["pre_tokenizer"] = map[string]any{"type": "ByteLevel", "add_prefix_space": false}
	m["normalizer"] = map[string]any{"type": "NFC"}
	old, err := read(t, m)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := old.Encode(" desk"), tok.Encode(" desk"); !slices.Equal(got, want) {
		t.Errorf("old merge spelling: %v, want %v", got, want)
	}
	if got := old.DecodeText(old.Encode("e\u0301")); got != "é" {
		t.Errorf("NFC not applied: %q", got)
	}
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tokenizer.json")
	if _, err := ReadFile(path); errs.CodeOf(err) != errs.NotFound {
		t.Errorf("missing file: %v", err)
	}
	var b bytes.Buffer
	if err := trained(t, 300).Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path); err != nil {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := trained(f, 270).Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte(`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a a"]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tok, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		if got := tok.DecodeText(tok.Encode("a b\xff")); !tok.nfc && got != "a b\xff" {
			t.Fatalf("accepted tokenizer does not round-trip: %q", got)
		}
	})
}
