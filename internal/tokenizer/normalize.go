package tokenizer

import (
	"encoding/json"

	"golang.org/x/text/unicode/norm"
)

// normalizerFor understands none and NFC, which the Qwen2 family uses.
func normalizerFor(raw json.RawMessage) (nfc bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return false, nil
	}
	var n struct {
		Type        string            `json:"type"`
		Normalizers []json.RawMessage `json:"normalizers"`
	}
	if json.Unmarshal(raw, &n) != nil {
		return false, bad("the normalizer is not readable")
	}
	switch {
	case n.Type == "NFC":
		return true, nil
	case n.Type == "Sequence" && len(n.Normalizers) == 0:
		return false, nil
	}
	return false, bad("the normalizer is %q; only none and NFC are supported", n.Type)
}

func (t *Tokenizer) normalize(text string) string {
	if t.nfc {
		return norm.NFC.String(text)
	}
	return text
}
