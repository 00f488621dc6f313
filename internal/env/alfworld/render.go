package alfworld

import "strings"

// renderer writes the texts of one state. at holds the entity of each placeholder, or nobody.
type renderer struct {
	g      *Game
	s      facts
	at     []entity
	bound  []int
	out    strings.Builder
	depth  int
	work   int
	failed bool
}

func newRenderer(g *Game, s facts) *renderer {
	w := &renderer{g: g, s: s, at: make([]entity, len(g.rules.places)), bound: make([]int, 0, 16)}
	for i := range w.at {
		w.at[i] = nobody
	}
	return w
}

// reset binds the placeholders of an operator's parameters and empties the output.
func (w *renderer) reset(params []int, args []entity) {
	for _, p := range w.bound {
		w.at[p] = nobody
	}
	w.bound = w.bound[:0]
	for i, p := range params {
		w.at[p] = args[i]
		w.bound = append(w.bound, p)
	}
	w.out.Reset()
	w.depth = 0
}

// over reports, and remembers, that a text grew beyond what a game may ask.
func (w *renderer) over() bool {
	if w.depth > maxDepth || w.out.Len() > maxOutput || w.work > maxWork {
		w.failed = true
	}
	return w.failed
}

func (w *renderer) segments(segs []segment) {
	for i := range segs {
		if w.work++; w.over() {
			return
		}
		s := &segs[i]
		switch s.kind {
		case segText:
			w.out.WriteString(s.text)
		case segGoal:
			w.out.WriteString(w.g.goalText)
		case segSymbol:
			w.symbol(s.sym)
		case segExpr:
			if s.query == nil {
				w.expression(s.expr)
				break
			}
			w.query(s.query, func() bool {
				w.expression(s.expr)
				return w.failed
			})
		case segList:
			w.list(s)
		}
	}
}

// symbol writes the first rule whose condition holds; the condition's assignment is not kept.
func (w *renderer) symbol(s *symbol) {
	w.depth++
	defer func() { w.depth-- }()
	if w.over() {
		return
	}
	for i := range s.rules {
		r := &s.rules[i]
		if r.cond == nil || w.query(r.cond, func() bool { return true }) {
			w.segments(r.rhs)
			return
		}
	}
}

// expression writes the first alternative that is not empty.
func (w *renderer) expression(alternatives [][]part) {
	start := w.out.Len()
	for _, sum := range alternatives {
		for i := range sum {
			p := &sum[i]
			switch {
			case p.sym != nil:
				w.symbol(p.sym)
			case p.attr == "":
				w.out.WriteString(p.literal)
			default:
				w.attribute(p)
			}
		}
		if w.out.Len() > start {
			return
		}
	}
}

func (w *renderer) attribute(p *part) {
	for i := len(p.vars) - 1; i >= 0; i-- {
		e := w.at[p.vars[i]]
		if e == nobody {
			continue
		}
		switch p.attr {
		case "name":
			w.out.WriteString(w.g.names[e])
		case "id":
			w.out.WriteString(w.g.ids[e])
		case "indefinite":
			w.out.WriteString("a")
		case "definite":
			w.out.WriteString("the")
		}
		return
	}
}

// list writes its items with the separators of the grammar. Which item is the last is known only at the end, so the
// separator before it is replaced then.
func (w *renderer) list(s *segment) {
	if s.query == nil {
		w.segments(s.items)
		return
	}
	n, from, to := 0, 0, 0 // the last separator is out[from:to]
	w.query(s.query, func() bool {
		if n++; n > 1 {
			from = w.out.Len()
			w.separator("list_separator", ", ")
			to = w.out.Len()
		}
		w.segments(s.items)
		return w.failed
	})
	switch {
	case n == 0:
		w.separator("list_empty", "nothing")
	case n > 1:
		all := w.out.String()
		w.out.Reset()
		w.out.Grow(len(all) + 8)
		w.out.WriteString(all[:from])
		w.separator("list_last_separator", ", and ")
		w.out.WriteString(all[to:])
	}
}

func (w *renderer) separator(name, standard string) {
	if s := w.g.rules.symbols[name]; s != nil {
		w.symbol(s)
		return
	}
	w.out.WriteString(standard)
}

// query calls yield for every assignment, loops nested in written order over facts sorted by argument ids. Two
// placeholders never stand for one entity. It stops when yield returns true and returns whether it was stopped.
func (w *renderer) query(atoms []queryAtom, yield func() bool) bool {
	if len(atoms) == 0 {
		return yield()
	}
	q := &atoms[0]
	if q.pred < 0 {
		return false
	}
	if len(q.args) == 0 {
		return len(w.s[q.pred]) > 0 && w.query(atoms[1:], yield)
	}
	list, swapped := w.s[q.pred], false
	if e := w.at[q.args[0]]; e != nobody {
		list = withFirst(list, e)
	} else if len(q.args) == 2 && w.at[q.args[1]] != nobody {
		if second := w.g.bySecond[q.pred]; second != nil {
			list, swapped = withFirst(second, w.at[q.args[1]]), true
		}
	}
	for _, k := range list {
		if w.work++; w.over() {
			return false
		}
		if swapped {
			k = k.swap()
		}
		before := len(w.bound)
		ok := true
		for i, p := range q.args {
			if ok = w.match(p, k.arg(i)); !ok {
				break
			}
		}
		stopped := ok && w.query(atoms[1:], yield)
		for _, p := range w.bound[before:] {
			w.at[p] = nobody
		}
		w.bound = w.bound[:before]
		if stopped {
			return true
		}
	}
	return false
}

func (w *renderer) match(p int, e entity) bool {
	if w.at[p] != nobody {
		return w.at[p] == e
	}
	if t := w.g.rules.places[p].typ; t != 0 && t != w.g.typ[e] {
		return false
	}
	for _, b := range w.bound {
		if w.at[b] == e {
			return false
		}
	}
	w.at[p] = e
	w.bound = append(w.bound, p)
	return true
}
