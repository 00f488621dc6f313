package alfworld

import "strings"

// sexpr is one PDDL expression: an atom, or a list when list is not nil.
type sexpr struct {
	atom string
	list []sexpr
	line int
}

func (s *sexpr) isList() bool { return s.list != nil }

// head returns the first atom of a list, or "".
func (s *sexpr) head() string {
	if len(s.list) == 0 {
		return ""
	}
	return s.list[0].atom
}

// readSexpr reads the single expression of a PDDL text. Everything is folded to lower case and comments are dropped.
func readSexpr(what, text string) (sexpr, error) {
	if len(text) > maxTextBytes {
		return sexpr{}, bad("%s has %d bytes; allowed are %d", what, len(text), maxTextBytes)
	}
	r := sexprReader{what: what, s: strings.ToLower(text), line: 1}
	r.space()
	if r.i >= len(r.s) || r.s[r.i] != '(' {
		return sexpr{}, bad("%s, line %d: it must begin with an opening parenthesis", what, r.line)
	}
	e, err := r.read(0)
	if err != nil {
		return sexpr{}, err
	}
	r.space()
	if r.i < len(r.s) {
		return sexpr{}, bad("%s, line %d: there is text after the last closing parenthesis", what, r.line)
	}
	return e, nil
}

type sexprReader struct {
	what  string
	s     string
	i     int
	line  int
	nodes int
}

func (r *sexprReader) space() {
	for r.i < len(r.s) {
		switch r.s[r.i] {
		case '\n':
			r.line++
			r.i++
		case ' ', '\t', '\r', '\f', '\v':
			r.i++
		case ';':
			for r.i < len(r.s) && r.s[r.i] != '\n' {
				r.i++
			}
		default:
			return
		}
	}
}

func (r *sexprReader) read(depth int) (sexpr, error) {
	if depth > maxDepth {
		return sexpr{}, bad("%s, line %d: parentheses are nested deeper than %d", r.what, r.line, maxDepth)
	}
	if r.nodes++; r.nodes > maxNodes {
		return sexpr{}, bad("%s, line %d: there are more than %d expressions", r.what, r.line, maxNodes)
	}
	line := r.line
	if r.s[r.i] != '(' {
		start := r.i
		for r.i < len(r.s) && !strings.ContainsRune(" \t\r\n\f\v();", rune(r.s[r.i])) {
			r.i++
		}
		return sexpr{atom: r.s[start:r.i], line: line}, nil
	}
	r.i++
	list := []sexpr{}
	for {
		r.space()
		if r.i >= len(r.s) {
			return sexpr{}, bad("%s: the text ends inside the parenthesis opened in line %d", r.what, line)
		}
		if r.s[r.i] == ')' {
			r.i++
			return sexpr{list: list, line: line}, nil
		}
		e, err := r.read(depth + 1)
		if err != nil {
			return sexpr{}, err
		}
		list = append(list, e)
	}
}

// typed is a name with its declared type.
type typed struct{ name, typ string }

// typedList reads "a b - t c - u d". Names without a type have the root type "object".
func typedList(what string, in []sexpr) ([]typed, error) {
	var out []typed
	from := 0
	for i := 0; i < len(in); i++ {
		if in[i].isList() {
			return nil, bad("%s, line %d: a name is needed where a parenthesis stands", what, in[i].line)
		}
		if in[i].atom != "-" {
			out = append(out, typed{in[i].atom, "object"})
			continue
		}
		if i+1 >= len(in) || in[i+1].isList() {
			return nil, bad("%s, line %d: a type name must follow the dash", what, in[i].line)
		}
		i++
		for ; from < len(out); from++ {
			out[from].typ = in[i].atom
		}
	}
	return out, nil
}
