// Package tokenizer turns text into token ids and back: byte-level BPE with a trainer, special tokens and the
// tokenizer.json format.
//
// Any byte sequence, valid UTF-8 or not, encodes and decodes to itself, unless a loaded tokenizer normalises texts. Text never becomes a special token; those are
// only reachable by id.
package tokenizer

import (
	"encoding/json"
	"sync"
)

// Tokenizer is a byte-level BPE. It is immutable after construction and safe for concurrent use.
type Tokenizer struct {
	tokens  [][]byte // bytes of each ordinary id; nil for special ids and gaps
	special map[string]int32
	names   map[int32]string // special ids to their text
	merges  []pair           // in rank order
	byteID  [256]int32
	rank    map[pair]merged
	split   splitter
	size    int

	nfc             bool            // texts are normalised before they are split
	ignoreMerges    bool            // words that are tokens are not merged up
	normalizer, pre json.RawMessage // as in tokenizer.json
	whole           map[string]int32

	mu    sync.RWMutex
	cache map[string][]int32 // encodings of words seen before
}

type pair struct{ a, b int32 }

type merged struct {
	rank int32
	id   int32
}

// VocabSize returns one more than the largest id.
func (t *Tokenizer) VocabSize() int { return t.size }

// Special returns the id of a special token.
func (t *Tokenizer) Special(name string) (int32, bool) {
	id, ok := t.special[name]
	return id, ok
}

// IsSpecial says whether id is a special token.
func (t *Tokenizer) IsSpecial(id int32) bool {
	_, ok := t.names[id]
	return ok
}

// Bytes returns the bytes of an ordinary token, and nil for special and unknown ids. The caller must not change them.
func (t *Tokenizer) Bytes(id int32) []byte {
	if id < 0 || int(id) >= len(t.tokens) {
		return nil
	}
	return t.tokens[id]
}

// Decode returns the text of ids; special tokens appear as their names, unknown ids as nothing. The result may be
// broken UTF-8 when the ids are.
func (t *Tokenizer) Decode(ids []int32) string {
	var b []byte
	for _, id := range ids {
		if s, ok := t.names[id]; ok {
			b = append(b, s...)
			continue
		}
		b = append(b, t.Bytes(id)...)
	}
	return string(b)
}

// DecodeText is Decode without special tokens.
func (t *Tokenizer) DecodeText(ids []int32) string {
	var b []byte
	for _, id := range ids {
		b = append(b, t.Bytes(id)...)
	}
	return string(b)
}

// Token returns how one id is shown to a person.
func (t *Tokenizer) Token(id int32) string { return t.Decode([]int32{id}) }
