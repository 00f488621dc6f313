package tokenizer

import (
	"encoding/json"
	"unicode"
	"unicode/utf8"
)

// The patterns that are known. Go's regexp lacks the look-ahead of the last three, so they are scanned by hand.
const (
	patternWords  = ` ?[\p{L}_]+| ?\p{N}+|\s|.`
	patternGPT2   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	patternQwen2  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	patternLlama3 = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// preWords is the pre_tokenizer entry of our own tokenizers.
func preWords() json.RawMessage {
	p, _ := json.Marshal(patternWords) // a constant string always marshals
	return json.RawMessage(`{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":` + string(p) +
		`},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false}]}`)
}

type preTokenizer struct {
	Type    string `json:"type"`
	Pattern struct {
		Regex string `json:"Regex"`
	} `json:"pattern"`
	Behavior       string         `json:"behavior"`
	Invert         bool           `json:"invert"`
	AddPrefixSpace bool           `json:"add_prefix_space"`
	UseRegex       *bool          `json:"use_regex"`
	Pretokenizers  []preTokenizer `json:"pretokenizers"`
}

// splitterFor understands ByteLevel alone, and Split followed by ByteLevel without a pattern of its own.
func splitterFor(raw json.RawMessage) (splitter, error) {
	var p preTokenizer
	if len(raw) == 0 || json.Unmarshal(raw, &p) != nil {
		return nil, bad("pre_tokenizer is missing or not readable")
	}
	list := []preTokenizer{p}
	if p.Type == "Sequence" {
		list = p.Pretokenizers
	}
	if len(list) == 0 || list[len(list)-1].Type != "ByteLevel" || len(list) > 2 {
		return nil, bad("pre_tokenizer must be ByteLevel, or Split followed by ByteLevel")
	}
	last := list[len(list)-1]
	if last.AddPrefixSpace {
		return nil, bad("pre_tokenizer adds a space before texts, which is not supported")
	}
	own := last.UseRegex == nil || *last.UseRegex
	if len(list) == 1 {
		if !own {
			return nil, bad("pre_tokenizer has no word pattern")
		}
		return scanner{digits: -1}.gpt2, nil
	}
	first := list[0]
	if own || first.Type != "Split" || first.Behavior != "Isolated" || first.Invert {
		return nil, bad("pre_tokenizer must be Split with behavior Isolated followed by ByteLevel with use_regex false")
	}
	switch first.Pattern.Regex {
	case patternWords:
		return splitWords, nil
	case patternGPT2:
		return scanner{digits: -1}.gpt2, nil
	case patternQwen2:
		return scanner{digits: 1}.modern, nil
	case patternLlama3:
		return scanner{digits: 3}.modern, nil
	}
	return nil, bad("the word pattern %.80q is not one of the four that can be reproduced exactly", first.Pattern.Regex)
}

// scanner splits by the patterns of large models. digits is the longest run of digits, -1 for any.
type scanner struct{ digits int }

func (s scanner) gpt2(text string) int {
	if n := contraction(text, false); n > 0 {
		return n
	}
	i := 0
	if text[0] == ' ' && len(text) > 1 {
		i = 1
	}
	for _, class := range []func(rune) bool{unicode.IsLetter, unicode.IsNumber, isMark} {
		if n := run(text[i:], class, -1); n > 0 {
			return i + n
		}
	}
	return spaces(text)
}

func (s scanner) modern(text string) int {
	if n := contraction(text, true); n > 0 {
		return n
	}
	if n := run(text, unicode.IsLetter, -1); n > 0 {
		return n
	}
	r, n := utf8.DecodeRuneInString(text)
	if r != '\r' && r != '\n' && !unicode.IsNumber(r) {
		if m := run(text[n:], unicode.IsLetter, -1); m > 0 {
			return n + m
		}
	}
	if n := run(text, unicode.IsNumber, s.digits); n > 0 {
		return n
	}
	i := 0
	if text[0] == ' ' {
		i = 1
	}
	if n := run(text[i:], isMark, -1); n > 0 {
		i += n
		return i + run(text[i:], isNewline, -1)
	}
	// \s*[\r\n]+: up to the last newline of the white space.
	if n := run(text, unicode.IsSpace, -1); n > 0 {
		for j := n; j > 0; j-- {
			if text[j-1] == '\n' || text[j-1] == '\r' {
				return j
			}
		}
	}
	return spaces(text)
}

// spaces matches \s+(?!\S)|\s+: white space, leaving its last character to a following word. Anything else, which can
// only be broken UTF-8, is taken one byte at a time.
func spaces(text string) int {
	n := run(text, unicode.IsSpace, -1)
	if n == 0 {
		_, n = utf8.DecodeRuneInString(text)
		return n
	}
	if n == len(text) {
		return n
	}
	_, last := utf8.DecodeLastRuneInString(text[:n])
	if n > last {
		return n - last
	}
	return n
}

func isMark(r rune) bool    { return !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r) }
func isNewline(r rune) bool { return r == '\r' || r == '\n' }

// run returns the length in bytes of the leading runes of a class, at most limit runes unless it is negative.
func run(text string, class func(rune) bool, limit int) int {
	i := 0
	for i < len(text) && limit != 0 {
		r, n := utf8.DecodeRuneInString(text[i:])
		if !class(r) {
			break
		}
		i += n
		limit--
	}
	return i
}

func contraction(text string, fold bool) int {
	if text[0] != '\'' {
		return 0
	}
	for _, c := range []string{"s", "t", "re", "ve", "m", "ll", "d"} {
		if len(text) <= len(c) {
			continue
		}
		got := text[1 : 1+len(c)]
		if got == c || fold && lowerASCII(got) == c {
			return 1 + len(c)
		}
	}
	return 0
}

func lowerASCII(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] >= 'A' && b[i] <= 'Z' {
			b[i] += 'a' - 'A'
		}
	}
	return string(b)
}
