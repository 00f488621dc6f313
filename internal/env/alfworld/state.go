package alfworld

import (
	"slices"
	"strings"
)

// operator is a schema with its arguments, and the command that runs it.
type operator struct {
	action int
	args   [maxParams]entity
	text   string
}

// state is the facts of one moment and the operators that are possible in it. It never changes.
type state struct {
	facts facts
	ops   [][]operator // per action, in the order of parameter ids
	won   bool
}

// opening builds the first state and its text.
func (g *Game) opening() (*state, error) {
	s, err := g.expand(g.start, nil, nil)
	if err != nil {
		return nil, err
	}
	w := newRenderer(g, s.facts)
	w.symbol(g.rules.symbols["intro"])
	if w.failed {
		return nil, bad("grammar: the opening text is too long or does not end")
	}
	g.intro = w.out.String()
	return s, nil
}

// expand finds the operators of a state. Those of prev are kept where no changed predicate matters; changed nil means
// everything.
func (g *Game) expand(fs facts, prev *state, changed []bool) (*state, error) {
	s := &state{facts: fs, ops: make([][]operator, len(g.rules.actions))}
	v := &solver{g: g, s: fs}
	w := newRenderer(g, fs)
	for i := range g.rules.actions {
		a := &g.rules.actions[i]
		if changed != nil && !touches(a.reads, changed) {
			s.ops[i] = prev.ops[i]
			continue
		}
		ops := g.operators(v, i)
		if len(ops) > maxOperators || v.exhausted() {
			return nil, bad("the action %q has too many instances in one state", a.schema.name)
		}
		for j := range ops {
			w.reset(a.params, ops[j].args[:])
			w.segments(a.template)
			ops[j].text = w.out.String()
		}
		s.ops[i] = ops
		if w.failed {
			return nil, bad("the commands of the action %q are too long or do not end", a.schema.name)
		}
	}
	v.bound = 0
	s.won = v.all(g.goal)
	if v.exhausted() {
		return nil, bad("the goal takes too long to evaluate")
	}
	return s, nil
}

func touches(reads, changed []bool) bool {
	for i, c := range changed {
		if c && reads[i] {
			return true
		}
	}
	return false
}

// operators enumerates the instances of an action, in the order of parameter ids and without those that change nothing.
func (g *Game) operators(v *solver, action int) []operator {
	s := g.rules.actions[action].schema
	var ops []operator
	v.bound = 0
	v.solve(append([]*formula(nil), s.pre...), s.params, func() bool {
		if !s.loops || g.effective(v, s) {
			op := operator{action: action}
			copy(op.args[:], v.values[:len(s.params)])
			ops = append(ops, op)
		}
		return len(ops) > maxOperators
	})
	byArgs := func(a, b operator) int { return slices.Compare(a.args[:], b.args[:]) }
	if !slices.IsSortedFunc(ops, byArgs) {
		slices.SortFunc(ops, byArgs)
	}
	return slices.CompactFunc(ops, func(a, b operator) bool { return a.args == b.args })
}

// effective reports whether the bound operator has a net effect: one that its precondition does not already demand
// (trap 2). Only schemas that may have none are asked.
func (g *Game) effective(v *solver, s *schema) bool {
	for i := range s.eff {
		e := &s.eff[i]
		k, ok := v.ground(e.atom)
		if !ok {
			continue
		}
		if e.del && g.adds(v, s, e.atom.pred, k) {
			continue
		}
		if !g.demanded(v, s, e, k) {
			return true
		}
	}
	return false
}

func (g *Game) adds(v *solver, s *schema, pred int, k fact) bool {
	for i := range s.eff {
		e := &s.eff[i]
		if e.del || e.atom.pred != pred {
			continue
		}
		if other, ok := v.ground(e.atom); ok && other == k {
			return true
		}
	}
	return false
}

func (g *Game) demanded(v *solver, s *schema, e *effect, k fact) bool {
	for _, f := range s.pre {
		if f.op == opNot && e.del {
			f = f.kids[0]
		} else if e.del {
			continue
		}
		if f.op != opAtom || f.pred != e.atom.pred {
			continue
		}
		if other, ok := v.ground(f); ok && other == k {
			return true
		}
	}
	return false
}

// apply runs an operator and returns the next facts and which predicates changed. Conditions are evaluated before the
// action; an atom both deleted and added ends true. A deleted fact is remembered as not_ fact until it is added again
// (trap 3).
func (g *Game) apply(s *state, op *operator) (facts, []bool) {
	sc := g.rules.actions[op.action].schema
	v := &solver{g: g, s: s.facts}
	for i := range sc.params {
		v.bind(i, op.args[i])
	}
	type change struct {
		pred int
		f    fact
	}
	var add, del []change
	for i := range sc.eff {
		e := &sc.eff[i]
		if k, ok := v.ground(e.atom); ok && v.all(e.when) {
			if e.del {
				del = append(del, change{e.atom.pred, k})
			} else {
				add = append(add, change{e.atom.pred, k})
			}
		}
	}
	n := len(g.rules.d.names)
	next := slices.Clone(s.facts)
	changed := make([]bool, n)
	for _, c := range del {
		if !slices.Contains(add, c) && next.remove(c.pred, c.f) {
			next.add(n+c.pred, c.f)
			changed[c.pred] = true
		}
	}
	for _, c := range add {
		if next.add(c.pred, c.f) {
			next.remove(n+c.pred, c.f)
			changed[c.pred] = true
		}
	}
	return next, changed
}

// commands returns the sorted set of texts of all operators.
func (s *state) commands() []string {
	n := 0
	for _, ops := range s.ops {
		n += len(ops)
	}
	out := make([]string, 0, n)
	for _, ops := range s.ops {
		for i := range ops {
			out = append(out, ops[i].text)
		}
	}
	slices.SortFunc(out, strings.Compare)
	return slices.Compact(out)
}

// find returns the operator of a command: of several with one text the first in schema and parameter order.
func (s *state) find(text string) *operator {
	for _, ops := range s.ops {
		for i := range ops {
			if ops[i].text == text {
				return &ops[i]
			}
		}
	}
	return nil
}
