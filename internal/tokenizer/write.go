package tokenizer

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"slices"
)

// Write writes the tokenizer in the tokenizer.json format. Equal tokenizers give equal bytes.
func (t *Tokenizer) Write(w io.Writer) error {
	table, _ := byteRunes()
	var vocab bytes.Buffer
	vocab.WriteByte('{')
	for id, b := range t.tokens {
		if b == nil {
			continue
		}
		if vocab.Len() > 1 {
			vocab.WriteByte(',')
		}
		if err := writeJSON(&vocab, toPrintable(&table, b)); err != nil {
			return err
		}
		vocab.WriteByte(':')
		if err := writeJSON(&vocab, id); err != nil {
			return err
		}
	}
	vocab.WriteByte('}')
	merges := make([][2]string, len(t.merges))
	for i, p := range t.merges {
		merges[i] = [2]string{toPrintable(&table, t.tokens[p.a]), toPrintable(&table, t.tokens[p.b])}
	}
	added := make([]addedToken, 0, len(t.names))
	for _, id := range slices.Sorted(maps.Keys(t.names)) {
		added = append(added, addedToken{ID: id, Content: t.names[id], Special: true})
	}
	f := file{
		Version:      "1.0",
		AddedTokens:  added,
		Normalizer:   t.normalizer,
		PreTokenizer: t.pre,
		Decoder:      json.RawMessage(`{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false}`),
		Model:        model{Type: "BPE", Vocab: vocab.Bytes(), Merges: merges, IgnoreMerges: t.ignoreMerges},
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(f)
}

// writeJSON writes v without HTML escapes and without the encoder's newline.
func writeJSON(b *bytes.Buffer, v any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	b.Truncate(b.Len() - 1)
	return nil
}
