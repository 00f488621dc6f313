package tokenizer

import (
	"encoding/json"
	"io"
	"os"

	"agentrl/internal/errs"
)

// maxFile bounds tokenizer.json; the largest known ones have some 35 MB.
const maxFile = 64 << 20

// file is the part of tokenizer.json that matters here.
type file struct {
	Version       string          `json:"version"`
	Truncation    any             `json:"truncation"`
	Padding       any             `json:"padding"`
	AddedTokens   []addedToken    `json:"added_tokens"`
	Normalizer    json.RawMessage `json:"normalizer"`
	PreTokenizer  json.RawMessage `json:"pre_tokenizer"`
	PostProcessor any             `json:"post_processor"`
	Decoder       json.RawMessage `json:"decoder"`
	Model         model           `json:"model"`
}

type addedToken struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Lstrip     bool   `json:"lstrip"`
	Rstrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type model struct {
	Type         string          `json:"type"`
	Dropout      *float64        `json:"dropout"`
	Unk          *string         `json:"unk_token"`
	Prefix       *string         `json:"continuing_subword_prefix"`
	Suffix       *string         `json:"end_of_word_suffix"`
	FuseUnk      bool            `json:"fuse_unk"`
	ByteFallback bool            `json:"byte_fallback"`
	IgnoreMerges bool            `json:"ignore_merges"`
	Vocab        json.RawMessage `json:"vocab"`
	Merges       any             `json:"merges"`
}

// ReadFile reads a tokenizer.json file.
func ReadFile(path string) (*Tokenizer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, errs.Wrap(errs.NotFound, err, "the tokenizer file cannot be opened")
	}
	t, err := Read(f)
	if cerr := f.Close(); err == nil && cerr != nil {
		return nil, cerr
	}
	return t, err
}

// Read reads tokenizer.json. It takes byte-level BPE with the word patterns that it can reproduce exactly, and refuses
// everything else: a pattern that is nearly right would give wrong ids without anyone noticing.
//
// All added tokens become special: they are never made from text.
func Read(r io.Reader) (*Tokenizer, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "tokenizer.json cannot be read")
	}
	if len(data) > maxFile {
		return nil, errs.New(errs.TooLarge, "tokenizer.json is larger than %d MB", maxFile>>20)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, bad("it is not the expected JSON (%v)", err)
	}
	switch m := &f.Model; {
	case m.Type != "BPE":
		return nil, bad("the model type is %q; only BPE is supported", m.Type)
	case m.Dropout != nil && *m.Dropout != 0:
		return nil, bad("dropout is set; it must be null")
	case m.ByteFallback || m.Prefix != nil && *m.Prefix != "" || m.Suffix != nil && *m.Suffix != "":
		return nil, bad("it uses byte_fallback or word affixes; only byte-level BPE is supported")
	}
	t := &Tokenizer{normalizer: f.Normalizer, pre: f.PreTokenizer, ignoreMerges: f.Model.IgnoreMerges, special: map[string]int32{}}
	if t.split, err = splitterFor(f.PreTokenizer); err != nil {
		return nil, err
	}
	if t.nfc, err = normalizerFor(f.Normalizer); err != nil {
		return nil, err
	}
	ids, err := t.readVocab(f.Model.Vocab, f.AddedTokens)
	if err != nil {
		return nil, err
	}
	if err := t.readMerges(f.Model.Merges, ids); err != nil {
		return nil, err
	}
	t.finish()
	return t, nil
}

func bad(format string, args ...any) *errs.Error {
	return errs.New(errs.Invalid, "tokenizer.json is not usable: "+format, args...)
}

// readVocab fills tokens, special and byteID and returns the ids by printable text.
func (t *Tokenizer) readVocab(raw json.RawMessage, added []addedToken) (map[string]int32, error) {
	var vocab map[string]int64
	if err := json.Unmarshal(raw, &vocab); err != nil {
		return nil, bad("model.vocab is not an object of ids (%v)", err)
	}
	if len(vocab) > maxVocab || len(added) > maxVocab {
		return nil, bad("it has more than %d tokens", maxVocab)
	}
	used := make(map[int32]bool, len(vocab)+len(added))
	for _, a := range added {
		switch {
		case a.Content == "" || len(a.Content) > maxTokenBytes:
			return nil, bad("the added token %d is empty or too long", a.ID)
		case a.ID < 0 || a.ID >= maxVocab:
			return nil, bad("the id %d of an added token is outside 0 to %d", a.ID, maxVocab-1)
		case used[a.ID]:
			return nil, bad("the id %d is used twice", a.ID)
		}
		if _, ok := t.special[a.Content]; ok {
			return nil, bad("the added token %q is listed twice", a.Content)
		}
		used[a.ID] = true
		t.special[a.Content] = a.ID
	}
	_, back := byteRunes()
	ids := make(map[string]int32, len(vocab))
	for text, id64 := range vocab {
		if id64 < 0 || id64 >= maxVocab {
			return nil, bad("the id %d of token %.40q is outside 0 to %d", id64, text, maxVocab-1)
		}
		id := int32(id64)
		if a, ok := t.special[text]; ok && a == id {
			continue // added tokens may be listed in the vocabulary as well
		}
		if used[id] {
			return nil, bad("the id %d is used twice", id)
		}
		used[id] = true
		b, ok := fromPrintable(back, text)
		if !ok || len(b) == 0 || len(b) > maxTokenBytes {
			return nil, bad("the token %.40q is empty, too long or not byte-level", text)
		}
		for int(id) >= len(t.tokens) {
			t.tokens = append(t.tokens, nil)
		}
		t.tokens[id] = b
		ids[text] = id
	}
	table, _ := byteRunes()
	for b := range 256 {
		id, ok := ids[string(table[b])]
		if !ok {
			return nil, bad("the byte %#02x has no token; byte-level BPE needs all 256", b)
		}
		t.byteID[b] = id
	}
	return ids, nil
}

// readMerges takes both spellings: pairs, and texts with one space.
func (t *Tokenizer) readMerges(raw any, ids map[string]int32) error {
	list, ok := raw.([]any)
	if !ok || len(list) > maxVocab {
		return bad("model.merges is not a list of at most %d pairs", maxVocab)
	}
	for i, m := range list {
		a, b, ok := mergeParts(m)
		if !ok {
			return bad("merge %d is neither a pair nor a text with one space", i)
		}
		ia, oka := ids[a]
		ib, okb := ids[b]
		if _, okc := ids[a+b]; !oka || !okb || !okc {
			return bad("merge %d joins %.40q and %.40q, and one of them or their union is not in the vocabulary", i, a, b)
		}
		t.merges = append(t.merges, pair{ia, ib})
	}
	return nil
}

func mergeParts(m any) (a, b string, ok bool) {
	switch v := m.(type) {
	case string:
		for i := range len(v) {
			if v[i] == ' ' {
				return v[:i], v[i+1:], true
			}
		}
	case []any:
		if len(v) == 2 {
			a, oka := v[0].(string)
			b, okb := v[1].(string)
			return a, b, oka && okb
		}
	}
	return "", "", false
}
