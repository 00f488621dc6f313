package templates

import (
	"context"
	"fmt"
	"html"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/a-h/templ"
)

// Piece is a stretch of text, or a mark that stands for a character that cannot be seen.
type Piece struct {
	Text string
	Mark bool
	Name string
}

// Reveal splits untrusted text so that characters which would be invisible or would reorder what is around them become
// marks: controls other than line feed and tab, bidirectional controls, zero-width characters, and bytes that are not
// UTF-8.
func Reveal(s string) []Piece {
	var out []Piece
	start := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		text, name := "", ""
		if r == utf8.RuneError && n == 1 {
			text, name = fmt.Sprintf("\\x%02X", s[i]), "a byte that is not UTF-8"
		} else {
			text, name = markOf(r)
		}
		if text != "" {
			if start < i {
				out = append(out, Piece{Text: s[start:i]})
			}
			out = append(out, Piece{Text: text, Mark: true, Name: name})
			start = i + n
		}
		i += n
	}
	if start < len(s) {
		out = append(out, Piece{Text: s[start:]})
	}
	return out
}

// Visible is Reveal as plain text.
func Visible(s string) string {
	pieces := Reveal(s)
	if len(pieces) == 1 && !pieces[0].Mark {
		return s
	}
	var b strings.Builder
	for _, p := range pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}

func markOf(r rune) (text, name string) {
	switch {
	case r == '\n' || r == '\t':
		return "", ""
	case r < 0x20 || r == 0x7f:
		return fmt.Sprintf("\\x%02X", r), "control character"
	case r >= 0x80 && r < 0xa0:
		return fmt.Sprintf("\\u%04X", r), "control character"
	case r == 0x61c || r == 0x200e || r == 0x200f || (r >= 0x202a && r <= 0x202e) || (r >= 0x2066 && r <= 0x2069):
		return fmt.Sprintf("\\u%04X", r), "changes the direction of text"
	case r == 0x200b || r == 0x200c || r == 0x200d || r == 0x2060 || r == 0xfeff || r == 0xad || r == 0x2028 || r == 0x2029:
		return fmt.Sprintf("\\u%04X", r), "cannot be seen"
	case r >= 0xe0000 && r <= 0xe007f:
		return fmt.Sprintf("\\U%08X", r), "cannot be seen"
	}
	return "", ""
}

// Exact writes untrusted text in an element of the class with its white space as it is and Reveal's marks in it.
func Exact(class, s string) templ.Component {
	return templ.ComponentFunc(func(_ context.Context, w io.Writer) error {
		var b strings.Builder
		b.WriteString(`<div class="` + html.EscapeString(class) + `">`)
		for _, p := range Reveal(s) {
			if p.Mark {
				b.WriteString(`<span class="ctl" title="` + html.EscapeString(p.Name) + `">` + html.EscapeString(p.Text) + `</span>`)
				continue
			}
			b.WriteString(html.EscapeString(p.Text))
		}
		b.WriteString(`</div>`)
		_, err := io.WriteString(w, b.String())
		return err
	})
}
