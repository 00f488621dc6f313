package alfworld

// rule is one alternative of a symbol: it is used if its condition has an assignment.
type rule struct {
	cond []queryAtom
	rhs  []segment
}

type symbol struct{ rules []rule }

// action is the text side of a schema.
type action struct {
	schema   *schema
	template []segment
	feedback []segment
	params   []int // placeholders of the schema's parameters
	reads    []bool
}

// rules is a domain and a grammar made ready for play. It is shared read-only by all games with the same texts.
type rules struct {
	d       *domain
	wording string
	actions []action
	symbols map[string]*symbol
	places  []placeholder
	dynamic []bool // predicates that some action changes
}

// link compiles the texts of a grammar against a domain. Actions without a template cannot be typed and are left out.
func link(d *domain, g *rawGrammar, wording string) (*rules, error) {
	r := &rules{d: d, wording: wording, symbols: map[string]*symbol{}, dynamic: make([]bool, len(d.names))}
	c := &segmentCompiler{d: d}
	for name := range g.symbols {
		r.symbols[name] = &symbol{}
	}
	for name, raw := range g.symbols {
		for _, one := range raw {
			var out rule
			var err error
			if one.Condition != "" {
				if out.cond, err = c.query(one.Condition); err != nil {
					return nil, err
				}
			}
			if out.rhs, err = c.text(one.RHS, 0); err != nil {
				return nil, err
			}
			r.symbols[name].rules = append(r.symbols[name].rules, out)
		}
	}
	for i := range d.schemas {
		s := &d.schemas[i]
		for _, e := range s.eff {
			r.dynamic[e.atom.pred] = true
		}
		raw, ok := g.actions[s.name]
		if !ok || raw.template == "" || s.name == "help" && wording == Legacy {
			continue
		}
		a := action{schema: s, reads: make([]bool, len(d.names))}
		var err error
		if a.template, err = c.text(raw.template, 0); err != nil {
			return nil, err
		}
		if a.feedback, err = c.text(raw.feedback, 0); err != nil {
			return nil, err
		}
		for _, v := range s.params {
			c.places = append(c.places, placeholder{})
			n := len(c.places) - 1
			for j, p := range c.places[:n] {
				if p.name == v.name && p.typ == v.typ {
					n = j
				}
			}
			if n == len(c.places)-1 {
				c.places[n] = placeholder{v.name, v.typ}
			} else {
				c.places = c.places[:len(c.places)-1]
			}
			a.params = append(a.params, n)
		}
		r.actions = append(r.actions, a)
	}
	if len(r.actions) == 0 {
		return nil, bad("grammar: no action of the domain has a template")
	}
	r.places = c.places
	return r, r.resolve()
}

// resolve replaces names of symbols and variables by what they mean.
func (r *rules) resolve() error {
	byName := map[string][]int{}
	for i, p := range r.places {
		byName[p.name] = append(byName[p.name], i)
	}
	var walk func(segs []segment) error
	walk = func(segs []segment) error {
		for i := range segs {
			s := &segs[i]
			if s.kind == segSymbol {
				if s.sym = r.symbols[s.text]; s.sym == nil {
					return bad("grammar: symbol %q is used but not defined", short(s.text))
				}
			}
			for _, sum := range s.expr {
				for j := range sum {
					p := &sum[j]
					if p.symbol != "" {
						if p.sym = r.symbols[p.symbol]; p.sym == nil {
							return bad("grammar: symbol %q is used but not defined", short(p.symbol))
						}
					}
					if p.attr != "" {
						p.vars = byName[p.literal]
					}
				}
			}
			if err := walk(s.items); err != nil {
				return err
			}
		}
		return nil
	}
	for name, s := range r.symbols {
		for i := range s.rules {
			// a symbol that nothing uses may be broken; the published files have such ones
			if err := walk(s.rules[i].rhs); err != nil {
				return bad("%v (in symbol %q)", err, short(name))
			}
		}
	}
	for i := range r.actions {
		a := &r.actions[i]
		if err := walk(a.template); err != nil {
			return err
		}
		if err := walk(a.feedback); err != nil {
			return err
		}
		for _, p := range a.schema.reads {
			a.reads[p] = true
		}
		r.markReads(a.template, a.reads)
	}
	return nil
}

// markReads adds the predicates that a template looks at. A template that calls symbols may look at anything.
func (r *rules) markReads(segs []segment, reads []bool) {
	for _, s := range segs {
		if s.kind == segSymbol {
			for i := range reads {
				reads[i] = true
			}
		}
		for _, q := range s.query {
			if q.pred >= 0 {
				reads[q.pred%len(r.d.names)] = true
			}
		}
		r.markReads(s.items, reads)
	}
}
