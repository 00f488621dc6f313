package alfworld

import (
	"strings"
)

type segmentKind uint8

const (
	segText segmentKind = iota
	segSymbol
	segExpr // also {expr | query}
	segList
	segGoal // the goal sentence of the game
)

// segment is one piece of a compiled right-hand side.
type segment struct {
	kind  segmentKind
	text  string // literal, or the name of a symbol
	sym   *symbol
	expr  [][]part
	query []queryAtom // nil: none
	items []segment   // of a list
}

// part is a summand of an expression; an expression is alternatives (or) of sums (+).
type part struct {
	literal string
	symbol  string
	sym     *symbol
	attr    string // of the variable in literal; empty for literals and symbols
	vars    []int  // placeholders with that variable name
}

// queryAtom is one condition with placeholder indices; pred -1 never holds.
type queryAtom struct {
	pred int
	args []int
}

// placeholder is a variable of the grammar: name and type together.
type placeholder struct {
	name string
	typ  int
}

// segmentCompiler turns texts into segments; it interns the placeholders of one grammar.
type segmentCompiler struct {
	d      *domain
	places []placeholder
}

func (c *segmentCompiler) place(name, typ string) int {
	t, ok := c.d.types[typ]
	if !ok {
		t = -1
	}
	for i, p := range c.places {
		if p.name == name && p.typ == t {
			return i
		}
	}
	c.places = append(c.places, placeholder{name, t})
	return len(c.places) - 1
}

// text compiles literal text with #symbols#, {expressions} and [lists]. Brackets that close nothing are literal.
func (c *segmentCompiler) text(s string, depth int) ([]segment, error) {
	if depth > maxDepth {
		return nil, bad("grammar: braces are nested deeper than %d", maxDepth)
	}
	var out []segment
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			out = append(out, segment{kind: segText, text: lit.String()})
			lit.Reset()
		}
	}
	for i := 0; i < len(s); {
		switch s[i] {
		case '#':
			if n := symbolEnd(s[i:]); n > 0 {
				flush()
				out = append(out, segment{kind: segSymbol, text: symbolName(s[i+1 : i+n])})
				i += n + 1
				continue
			}
		case '{', '[':
			n := matching(s[i:])
			if n < 0 {
				return nil, bad("grammar: %q is opened but not closed in %q", s[i:i+1], short(s))
			}
			flush()
			build := c.braces
			if s[i] == '[' {
				build = c.list
			}
			seg, err := build(s[i+1:i+n], depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, seg)
			i += n + 1
			continue
		}
		lit.WriteByte(s[i])
		i++
	}
	flush()
	return out, nil
}

// symbolEnd returns the index of the closing # if s, which begins with #, calls a symbol.
func symbolEnd(s string) int {
	for j := 1; j < len(s); j++ {
		switch c := s[j]; {
		case c == '#':
			if j == 1 {
				return 0
			}
			return j
		case isWordByte(c) || c == '.' || c == '(' || c == ')' || c == ',' || c == ' ':
		default:
			return 0
		}
	}
	return 0
}

func symbolName(s string) string { return strings.ReplaceAll(s, " ", "") }

// matching returns the index of the bracket that closes the one s begins with, or -1. Quoted texts are skipped inside
// braces.
func matching(s string) int {
	var stack []byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '{':
			stack = append(stack, '}')
		case '[':
			stack = append(stack, ']')
		case '\'', '"':
			if stack[len(stack)-1] == '}' {
				n := strings.IndexByte(s[i+1:], c)
				if n < 0 {
					return -1
				}
				i += n + 1
			}
		case '}', ']':
			if stack[len(stack)-1] != c {
				continue
			}
			stack = stack[:len(stack)-1]
			if len(stack) == 0 {
				return i
			}
		}
	}
	return -1
}

// cut splits at the first | outside quotes and brackets.
func cut(s string) (before, after string, found bool) {
	depth := 0
	var quote byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case (c == '\'' || c == '"') && strings.IndexByte(s[i+1:], c) >= 0:
			quote = c
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case c == '|' && depth == 0:
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

func (c *segmentCompiler) braces(s string, _ int) (segment, error) {
	seg := segment{kind: segExpr}
	text, query, found := cut(s)
	var err error
	if found {
		if seg.query, err = c.query(query); err != nil {
			return seg, err
		}
	}
	if strings.TrimSpace(text) == goalMark {
		return segment{kind: segGoal}, nil
	}
	seg.expr, err = c.expression(text)
	return seg, err
}

// list compiles the inside of [...]: one {expr | query}, or text | query.
func (c *segmentCompiler) list(s string, depth int) (segment, error) {
	seg := segment{kind: segList}
	t := strings.TrimSpace(s)
	if strings.HasPrefix(t, "{") && matching(t) == len(t)-1 {
		inner, err := c.braces(t[1:len(t)-1], depth)
		if err != nil {
			return seg, err
		}
		seg.query, inner.query = inner.query, nil
		seg.items = []segment{inner}
		return seg, nil
	}
	text, query, found := cut(s)
	var err error
	if found {
		if seg.query, err = c.query(query); err != nil {
			return seg, err
		}
		// "[r.name | query]" names an expression, everything else is text
		if expr, e := c.expression(text); e == nil {
			seg.items = []segment{{kind: segExpr, expr: expr}}
			return seg, nil
		}
	}
	seg.items, err = c.text(text, depth)
	return seg, err
}

func short(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}
