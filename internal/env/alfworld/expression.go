package alfworld

import "strings"

// expression compiles alternatives (or) of sums (+) of variables, attributes, quoted texts and #symbols#.
func (c *segmentCompiler) expression(s string) ([][]part, error) {
	out := [][]part{nil}
	operand := true
	rest := strings.TrimSpace(s)
	for rest != "" {
		word, next, err := exprToken(rest)
		if err != nil {
			return nil, err
		}
		rest = strings.TrimSpace(next)
		last := len(out) - 1
		switch {
		case word == "or" && !operand:
			out = append(out, nil)
			operand = true
		case word == "+" && !operand:
			operand = true
		case !operand || word == "or" || word == "+":
			return nil, bad("grammar: %q is not an expression", short(s))
		default:
			p, err := c.operand(word)
			if err != nil {
				return nil, err
			}
			out[last] = append(out[last], p)
			operand = false
		}
	}
	if operand {
		return nil, bad("grammar: the expression %q is not complete", short(s))
	}
	return out, nil
}

func exprToken(s string) (word, rest string, err error) {
	switch s[0] {
	case '+':
		return "+", s[1:], nil
	case '\'', '"', '#':
		n := strings.IndexByte(s[1:], s[0])
		if n < 0 {
			return "", "", bad("grammar: %q does not end", short(s))
		}
		return s[:n+2], s[n+2:], nil
	}
	n := 0
	for n < len(s) && (isWordByte(s[n]) || s[n] == '.') {
		n++
	}
	if n == 0 {
		return "", "", bad("grammar: %q is not an expression", short(s))
	}
	return s[:n], s[n:], nil
}

func (c *segmentCompiler) operand(word string) (part, error) {
	switch word[0] {
	case '\'', '"':
		return part{literal: word[1 : len(word)-1]}, nil
	case '#':
		return part{symbol: symbolName(word[1 : len(word)-1])}, nil
	}
	name, attr, ok := strings.Cut(strings.ToLower(word), ".")
	if !ok {
		attr = "name"
	}
	switch attr {
	case "name", "id", "indefinite", "definite":
	default:
		return part{}, bad("grammar: %q has the attribute %q; allowed are name, id, indefinite and definite", short(word), short(attr))
	}
	return part{attr: attr, symbol: "", literal: name}, nil
}

// query compiles "pred(name:type, ...) & ...".
func (c *segmentCompiler) query(s string) ([]queryAtom, error) {
	out := []queryAtom{}
	for _, one := range strings.Split(s, "&") {
		one = strings.ToLower(strings.TrimSpace(one))
		open := strings.IndexByte(one, '(')
		if open <= 0 || !strings.HasSuffix(one, ")") {
			return nil, bad("grammar: the condition %q must be of the form predicate(name:type, ...)", short(one))
		}
		a := queryAtom{pred: -1}
		name := strings.TrimSpace(one[:open])
		base, negated := strings.CutPrefix(name, "not_")
		p, ok := c.d.preds[base]
		if ok {
			a.pred = p
			if negated {
				a.pred += len(c.d.names)
			}
		}
		if args := strings.TrimSpace(one[open+1 : len(one)-1]); args != "" {
			for _, arg := range strings.Split(args, ",") {
				n, t, found := strings.Cut(arg, ":")
				n, t = strings.TrimSpace(n), strings.TrimSpace(t)
				if !found || n == "" || t == "" {
					return nil, bad("grammar: the argument %q of %q must be of the form name:type", short(arg), short(one))
				}
				a.args = append(a.args, c.place(n, t))
			}
		}
		if ok && len(a.args) != c.d.arity[p] {
			return nil, bad("grammar: %q takes %d arguments, not %d", short(name), c.d.arity[p], len(a.args))
		}
		out = append(out, a)
	}
	return out, nil
}
