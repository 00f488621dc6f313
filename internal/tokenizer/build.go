package tokenizer

import (
	"encoding/json"
	"slices"

	"agentrl/internal/errs"
)

// Limits on what is read or trained.
const (
	maxVocab      = 1 << 20
	maxTokenBytes = 4096
)

// build makes a tokenizer of our own layout: ids 0 to 255 are the bytes, then the merges, then the special tokens.
func build(merges []pair, special []string, split splitter, pre json.RawMessage) (*Tokenizer, error) {
	t := &Tokenizer{
		tokens: make([][]byte, 256, 256+len(merges)),
		merges: slices.Clone(merges),
		split:  split,
		pre:    pre,
	}
	for i := range 256 {
		t.tokens[i] = []byte{byte(i)}
		t.byteID[i] = int32(i)
	}
	known := map[string]bool{}
	for _, p := range merges {
		if text := slices.Concat(t.tokens[p.a], t.tokens[p.b]); !known[string(text)] {
			known[string(text)] = true
			t.tokens = append(t.tokens, text)
		}
	}
	t.special = map[string]int32{}
	for i, s := range special {
		if _, ok := t.special[s]; ok || s == "" {
			return nil, errs.Field("special", "special tokens must be distinct and not empty; %q is not", s)
		}
		t.special[s] = int32(len(t.tokens) + i)
	}
	t.finish()
	return t, nil
}

// finish derives the lookup tables. Merges whose result has no id are an error of the caller.
func (t *Tokenizer) finish() {
	t.size = len(t.tokens)
	t.names = make(map[int32]string, len(t.special))
	for s, id := range t.special {
		t.names[id] = s
		t.size = max(t.size, int(id)+1)
	}
	byBytes := make(map[string]int32, len(t.tokens))
	for id := len(t.tokens) - 1; id >= 0; id-- {
		if t.tokens[id] != nil {
			byBytes[string(t.tokens[id])] = int32(id)
		}
	}
	t.rank = make(map[pair]merged, len(t.merges))
	for r, p := range t.merges {
		if _, ok := t.rank[p]; ok {
			continue
		}
		if id, ok := byBytes[string(t.tokens[p.a])+string(t.tokens[p.b])]; ok {
			t.rank[p] = merged{int32(r), id}
		}
	}
	if t.ignoreMerges {
		t.whole = byBytes
	}
	t.cache = make(map[string][]int32)
}
