package tokenizer

import "unicode/utf8"

// byteRune is the printable stand-in of each byte in tokenizer.json: printable Latin-1 characters stand for
// themselves, the 68 others for the characters from U+0100 on, in order.
func byteRunes() (table [256]rune, back map[rune]byte) {
	back = make(map[rune]byte, 256)
	next := rune(0x100)
	for b := range 256 {
		r := rune(b)
		if !(b >= '!' && b <= '~' || b >= 0xa1 && b <= 0xac || b >= 0xae) {
			r = next
			next++
		}
		table[b] = r
		back[r] = byte(b)
	}
	return table, back
}

func toPrintable(table *[256]rune, b []byte) string {
	out := make([]byte, 0, 2*len(b))
	for _, c := range b {
		out = utf8.AppendRune(out, table[c])
	}
	return string(out)
}

// fromPrintable is false when s holds a character that stands for no byte.
func fromPrintable(back map[rune]byte, s string) ([]byte, bool) {
	out := make([]byte, 0, len(s))
	for _, r := range s {
		b, ok := back[r]
		if !ok {
			return nil, false
		}
		out = append(out, b)
	}
	return out, true
}
