package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// splitter returns the length in bytes, at least 1, of the first word of a non-empty text. Merges never cross words.
type splitter func(text string) int

// splitWords is the pattern of our own tokenizers, ` ?[\p{L}_]+| ?\p{N}+|\s|.`: runs of letters or of digits with one
// leading space, everything else alone. Common words then become one token even in a small vocabulary, and numbers
// never stick to words.
func splitWords(text string) int {
	i := 0
	if text[0] == ' ' {
		i = 1
	}
	if i < len(text) {
		r, n := utf8.DecodeRuneInString(text[i:])
		if class := classOf(r, n); class != other {
			for i += n; i < len(text); i += n {
				r, n = utf8.DecodeRuneInString(text[i:])
				if classOf(r, n) != class {
					break
				}
			}
			return i
		}
	}
	_, n := utf8.DecodeRuneInString(text)
	return n
}

type runeClass int

const (
	other runeClass = iota
	letter
	digit
)

func classOf(r rune, n int) runeClass {
	switch {
	case r == utf8.RuneError && n <= 1:
		return other
	case r < utf8.RuneSelf:
		switch {
		case r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_':
			return letter
		case r >= '0' && r <= '9':
			return digit
		}
		return other
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return digit
	}
	return other
}
