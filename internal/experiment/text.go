package experiment

import "unicode"

// Unprintable reports whether a character has no place in a name: controls, line and paragraph separators, and the
// marks that reorder the text around them or have no width at all (the joiners, which scripts need, are allowed).
func Unprintable(r rune) bool {
	switch r {
	case 0x2028, 0x2029, 0x200b, 0x2060, 0xfeff:
		return true
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}
