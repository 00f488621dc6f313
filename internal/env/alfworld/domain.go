package alfworld

import "strings"

// domain is the parsed rule part of a game (env-alfworld.md 2.3). It is shared by all games with the same text and
// never changes after parsing.
type domain struct {
	types   map[string]int // 0 is the root "object"
	preds   map[string]int
	arity   []int
	names   []string // predicate names; "not_" facts have the index of their predicate plus len(names)
	schemas []schema
	consts  []string // constants that the actions mention, by index
}

// schema is one action of the domain.
type schema struct {
	name   string
	params []variable
	pre    []*formula // a conjunction
	eff    []effect
	// reads lists the predicates that decide which operators exist.
	reads []int
	// loops says that an operator may have no net effect, which must be checked per operator (trap 2).
	loops bool
}

// variable has the slot that it is bound in and a type; type -1 has no members.
type variable struct {
	name string
	slot int
	typ  int
}

// effect adds or deletes an atom if all conditions hold before the action.
type effect struct {
	when []*formula
	del  bool
	atom *formula
}

func parseDomain(text string) (*domain, error) {
	const what = "pddl_domain"
	root, err := readSexpr(what, text)
	if err != nil {
		return nil, err
	}
	if root.head() != "define" {
		return nil, bad("%s: it must be of the form (define (domain NAME) ...)", what)
	}
	d := &domain{types: map[string]int{"object": 0}, preds: map[string]int{}}
	for i := range root.list[1:] {
		part := &root.list[1+i]
		switch part.head() {
		case "domain", ":requirements", ":functions":
		case ":types":
			err = d.addTypes(part)
		case ":predicates":
			err = d.addPredicates(part)
		case ":action":
		default:
			err = bad("%s, line %d: %q is not supported; allowed are :requirements, :types, :predicates, :functions and :action", what, part.line, part.head())
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range root.list {
		if part := &root.list[i]; part.head() == ":action" {
			if err := d.addAction(part); err != nil {
				return nil, err
			}
		}
	}
	if len(d.schemas) == 0 {
		return nil, bad("%s: it has no :action", what)
	}
	return d, nil
}

func (d *domain) addTypes(part *sexpr) error {
	list, err := typedList("pddl_domain", part.list[1:])
	if err != nil {
		return err
	}
	for _, t := range list {
		if t.typ != "object" {
			return bad("pddl_domain, line %d: type %q has the parent %q; types must be flat", part.line, t.name, t.typ)
		}
		if _, ok := d.types[t.name]; !ok {
			d.types[t.name] = len(d.types)
		}
	}
	return nil
}

func (d *domain) addPredicates(part *sexpr) error {
	for i := range part.list[1:] {
		p := &part.list[1+i]
		if p.head() == "" {
			return bad("pddl_domain, line %d: a predicate must be of the form (name ?x - type ...)", p.line)
		}
		args, err := typedList("pddl_domain", p.list[1:])
		if err != nil {
			return err
		}
		name := p.head()
		switch {
		case len(args) > maxArity:
			return bad("pddl_domain, line %d: predicate %q has %d arguments; allowed are %d", p.line, name, len(args), maxArity)
		case len(d.names) >= maxPredicates:
			return bad("pddl_domain, line %d: there are more than %d predicates", p.line, maxPredicates)
		case strings.HasPrefix(name, "not_"):
			return bad("pddl_domain, line %d: predicate %q has a reserved name", p.line, name)
		}
		if _, ok := d.preds[name]; ok {
			return bad("pddl_domain, line %d: predicate %q is declared twice", p.line, name)
		}
		d.preds[name] = len(d.names)
		d.names = append(d.names, name)
		d.arity = append(d.arity, len(args))
	}
	return nil
}

func (d *domain) addAction(part *sexpr) error {
	const what = "pddl_domain"
	if len(d.schemas) >= maxSchemas {
		return bad("%s: there are more than %d actions", what, maxSchemas)
	}
	if len(part.list) < 2 || part.list[1].isList() {
		return bad("%s, line %d: the action has no name", what, part.line)
	}
	s := schema{name: part.list[1].atom}
	for i := range d.schemas {
		if d.schemas[i].name == s.name {
			return bad("%s, line %d: action %q is defined twice", what, part.line, s.name)
		}
	}
	c := &compiler{what: what, d: d, constant: d.constant}
	rest := part.list[2:]
	var effects *sexpr
	for ; len(rest) > 0; rest = rest[2:] {
		if len(rest) < 2 {
			return bad("%s, line %d: %s of action %q has no value", what, rest[0].line, rest[0].atom, s.name)
		}
		key, value := rest[0].atom, &rest[1]
		if !value.isList() {
			return bad("%s, line %d: %s of action %q must be in parentheses", what, value.line, key, s.name)
		}
		switch key {
		case ":parameters":
			list, err := typedList(what, value.list)
			if err != nil {
				return err
			}
			if len(list) > maxParams {
				return bad("%s, line %d: action %q has %d parameters; allowed are %d", what, value.line, s.name, len(list), maxParams)
			}
			if s.params, err = c.declare(value.line, list); err != nil {
				return err
			}
		case ":precondition":
			f, err := c.compile(value, 0)
			if err != nil {
				return err
			}
			s.pre = flatten(f)
		case ":effect":
			effects = value
		default:
			return bad("%s, line %d: %q of action %q is not supported; allowed are :parameters, :precondition and :effect", what, rest[0].line, key, s.name)
		}
	}
	if effects == nil {
		return bad("%s, line %d: action %q has no :effect", what, part.line, s.name)
	}
	var err error
	if s.eff, err = c.effects(effects, nil, 0); err != nil {
		return err
	}
	s.finish(len(d.names))
	d.schemas = append(d.schemas, s)
	return nil
}

// constant interns a name that an action mentions.
func (d *domain) constant(name string) (int, error) {
	for i, c := range d.consts {
		if c == name {
			return i, nil
		}
	}
	d.consts = append(d.consts, name)
	return len(d.consts) - 1, nil
}

// finish works out what the enumeration of operators needs to know.
func (s *schema) finish(preds int) {
	seen := make([]bool, preds)
	for _, f := range s.pre {
		f.mark(seen)
	}
	for p, ok := range seen {
		if ok {
			s.reads = append(s.reads, p)
		}
	}
	s.loops = true
	for _, e := range s.eff {
		if len(e.when) > 0 || !s.mayRequire(e) {
			s.loops = false
		}
	}
}

// mayRequire reports whether some instance of the effect can already be demanded by the precondition, or be undone by
// another effect.
func (s *schema) mayRequire(e effect) bool {
	for _, f := range s.pre {
		if f.op == opAtom && !e.del && f.pred == e.atom.pred {
			return true
		}
		if f.op == opNot && e.del && f.kids[0].op == opAtom && f.kids[0].pred == e.atom.pred {
			return true
		}
	}
	if e.del {
		for _, o := range s.eff {
			if !o.del && o.atom.pred == e.atom.pred {
				return true
			}
		}
	}
	return false
}
