package alfworld

import "strings"

type formulaOp uint8

const (
	opAtom formulaOp = iota
	opEqual
	opAnd
	opOr
	opNot
	opExists
	opForall
)

// term is a variable slot when not negative, otherwise ^term is the index of a constant.
type term int32

// formula is a compiled condition. And, exists and forall hold a flat conjunction in kids.
type formula struct {
	op   formulaOp
	pred int
	args []term
	kids []*formula
	vars []variable
	free uint64 // slots that come from outside
}

// mark sets seen[p] for every predicate of the formula.
func (f *formula) mark(seen []bool) {
	if f.op == opAtom {
		seen[f.pred] = true
	}
	for _, k := range f.kids {
		k.mark(seen)
	}
}

func flatten(f *formula) []*formula {
	if f.op == opAnd {
		return f.kids
	}
	return []*formula{f}
}

// compiler turns PDDL conditions and effects into formulas with variable slots.
type compiler struct {
	what     string
	d        *domain
	constant func(string) (int, error)
	scope    []variable
	slots    int
}

func (c *compiler) declare(line int, list []typed) ([]variable, error) {
	out := make([]variable, len(list))
	for i, t := range list {
		if !strings.HasPrefix(t.name, "?") {
			return nil, bad("%s, line %d: variable %q must begin with a question mark", c.what, line, t.name)
		}
		typ, ok := c.d.types[t.typ]
		if !ok {
			typ = -1 // trap 1: the published games name a type "location,"
		}
		if c.slots >= maxSlots {
			return nil, bad("%s, line %d: there are more than %d variables", c.what, line, maxSlots)
		}
		out[i] = variable{t.name[1:], c.slots, typ}
		c.slots++
	}
	c.scope = append(c.scope, out...)
	return out, nil
}

func (c *compiler) compile(e *sexpr, depth int) (*formula, error) {
	if !e.isList() {
		return nil, bad("%s, line %d: a condition must be in parentheses, not %q", c.what, e.line, e.atom)
	}
	if len(e.list) == 0 {
		return &formula{op: opAnd}, nil
	}
	switch e.head() {
	case "and":
		kids, err := c.conjunction(e.list[1:], depth)
		return group(opAnd, kids), err
	case "or":
		var kids []*formula
		for i := range e.list[1:] {
			k, err := c.compile(&e.list[1+i], depth+1)
			if err != nil {
				return nil, err
			}
			kids = append(kids, k)
		}
		return group(opOr, kids), nil
	case "not":
		if len(e.list) != 2 {
			return nil, bad("%s, line %d: not takes one condition, not %d", c.what, e.line, len(e.list)-1)
		}
		k, err := c.compile(&e.list[1], depth+1)
		if err != nil {
			return nil, err
		}
		return group(opNot, []*formula{k}), nil
	case "exists", "forall":
		return c.quantified(e, depth)
	case "=":
		if len(e.list) != 3 {
			return nil, bad("%s, line %d: = takes two names, not %d", c.what, e.line, len(e.list)-1)
		}
		f := &formula{op: opEqual}
		return f, c.terms(f, e)
	}
	return c.atom(e)
}

func (c *compiler) conjunction(list []sexpr, depth int) ([]*formula, error) {
	var kids []*formula
	for i := range list {
		k, err := c.compile(&list[i], depth+1)
		if err != nil {
			return nil, err
		}
		kids = append(kids, flatten(k)...)
	}
	return kids, nil
}

func (c *compiler) quantified(e *sexpr, depth int) (*formula, error) {
	if len(e.list) != 3 || !e.list[1].isList() {
		return nil, bad("%s, line %d: %s must be of the form (%s (?x - type) CONDITION)", c.what, e.line, e.head(), e.head())
	}
	list, err := typedList(c.what, e.list[1].list)
	if err != nil {
		return nil, err
	}
	outer := len(c.scope)
	vars, err := c.declare(e.line, list)
	if err != nil {
		return nil, err
	}
	body, err := c.compile(&e.list[2], depth+1)
	c.scope = c.scope[:outer]
	if err != nil {
		return nil, err
	}
	f := group(opExists, flatten(body))
	if e.head() == "forall" {
		f.op = opForall
	}
	f.vars = vars
	for _, v := range vars {
		f.free &^= 1 << v.slot
	}
	return f, nil
}

func group(op formulaOp, kids []*formula) *formula {
	f := &formula{op: op, kids: kids}
	for _, k := range kids {
		f.free |= k.free
	}
	return f
}

func (c *compiler) atom(e *sexpr) (*formula, error) {
	p, ok := c.d.preds[e.head()]
	if !ok {
		return nil, bad("%s, line %d: predicate %q is not declared", c.what, e.line, e.head())
	}
	if n := len(e.list) - 1; n != c.d.arity[p] {
		return nil, bad("%s, line %d: predicate %q takes %d arguments, not %d", c.what, e.line, e.head(), c.d.arity[p], n)
	}
	f := &formula{op: opAtom, pred: p}
	return f, c.terms(f, e)
}

func (c *compiler) terms(f *formula, e *sexpr) error {
	for i := range e.list[1:] {
		a := &e.list[1+i]
		if a.isList() {
			return bad("%s, line %d: a name is needed where a parenthesis stands", c.what, a.line)
		}
		if !strings.HasPrefix(a.atom, "?") {
			k, err := c.constant(a.atom)
			if err != nil {
				return err
			}
			f.args = append(f.args, term(^k))
			continue
		}
		slot := -1
		for j := len(c.scope) - 1; j >= 0 && slot < 0; j-- {
			if c.scope[j].name == a.atom[1:] {
				slot = c.scope[j].slot
			}
		}
		if slot < 0 {
			return bad("%s, line %d: variable %q is not declared", c.what, a.line, a.atom)
		}
		f.args = append(f.args, term(slot))
		f.free |= 1 << slot
	}
	return nil
}

// effects compiles an effect; costs are read and ignored.
func (c *compiler) effects(e *sexpr, when []*formula, depth int) ([]effect, error) {
	if !e.isList() {
		return nil, bad("%s, line %d: an effect must be in parentheses, not %q", c.what, e.line, e.atom)
	}
	switch e.head() {
	case "":
		if len(e.list) == 0 {
			return nil, nil
		}
		return nil, bad("%s, line %d: an effect must begin with a name", c.what, e.line)
	case "increase":
		return nil, nil
	case "and":
		var out []effect
		for i := range e.list[1:] {
			es, err := c.effects(&e.list[1+i], when, depth+1)
			if err != nil {
				return nil, err
			}
			out = append(out, es...)
		}
		return out, nil
	case "when":
		if len(e.list) != 3 {
			return nil, bad("%s, line %d: when takes a condition and an effect", c.what, e.line)
		}
		f, err := c.compile(&e.list[1], depth+1)
		if err != nil {
			return nil, err
		}
		return c.effects(&e.list[2], append(append([]*formula(nil), when...), flatten(f)...), depth+1)
	case "not":
		if len(e.list) != 2 || !e.list[1].isList() {
			return nil, bad("%s, line %d: not takes one atom in an effect", c.what, e.line)
		}
		a, err := c.atom(&e.list[1])
		return []effect{{when: when, del: true, atom: a}}, err
	}
	a, err := c.atom(e)
	return []effect{{when: when, atom: a}}, err
}
