package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// The golden file holds random texts with the words that the reference tokenizers library (0.23) cuts them into under
// each of the four patterns.
func TestSplitsEqualTheReferenceLibrary(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/splits.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden []struct {
		Text  string
		Words map[string][]string
	}
	if err := json.Unmarshal(b, &golden); err != nil {
		t.Fatal(err)
	}
	splitters := map[string]splitter{
		"words": splitWords, "gpt2": scanner{digits: -1}.gpt2, "qwen2": scanner{digits: 1}.modern, "llama3": scanner{digits: 3}.modern,
	}
	if len(golden) < 200 {
		t.Fatalf("only %d golden texts", len(golden))
	}
	for _, g := range golden {
		for name, split := range splitters {
			var got []string
			for s := g.Text; s != ""; {
				n := split(s)
				got = append(got, s[:n])
				s = s[n:]
			}
			if !slices.Equal(got, g.Words[name]) {
				t.Errorf("%s, %q: got %q, want %q", name, g.Text, got, g.Words[name])
			}
		}
	}
}
