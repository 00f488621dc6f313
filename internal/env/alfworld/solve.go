package alfworld

// solver enumerates the assignments of a conjunction over the facts of one state. Nothing is grounded: the conjunct
// with the fewest candidates is taken next.
type solver struct {
	g      *Game
	s      facts
	values [maxSlots]entity
	bound  uint64
	work   int
}

func (v *solver) term(t term) entity {
	if t < 0 {
		return v.g.consts[^t]
	}
	return v.values[t]
}

func (v *solver) known(t term) bool { return t < 0 || v.bound>>uint(t)&1 == 1 }

// bind gives a variable slot its value.
func (v *solver) bind(slot int, e entity) {
	v.values[slot] = e
	v.bound |= 1 << uint(slot)
}

// exhausted reports that the state asks for more work than a game may.
func (v *solver) exhausted() bool { return v.work > maxWork }

// all reports whether every formula holds; the free variables must be bound.
func (v *solver) all(fs []*formula) bool {
	for _, f := range fs {
		if !v.holds(f) {
			return false
		}
	}
	return true
}

// holds tests one formula whose free variables are bound.
func (v *solver) holds(f *formula) bool {
	v.work++
	switch f.op {
	case opAtom:
		k, ok := v.ground(f)
		return ok && v.s.has(f.pred, k)
	case opEqual:
		return v.term(f.args[0]) == v.term(f.args[1])
	case opAnd:
		return v.all(f.kids)
	case opNot:
		return !v.holds(f.kids[0])
	case opOr:
		for _, k := range f.kids {
			if v.holds(k) {
				return true
			}
		}
		return false
	case opExists:
		return v.exists(f.vars, f.kids)
	default: // forall: there is no assignment that fails
		return !v.exists(f.vars, []*formula{{op: opNot, kids: []*formula{{op: opAnd, kids: f.kids, free: freeOf(f.kids)}}, free: freeOf(f.kids)}})
	}
}

func freeOf(fs []*formula) uint64 {
	var m uint64
	for _, f := range fs {
		m |= f.free
	}
	return m
}

func (v *solver) exists(vars []variable, kids []*formula) bool {
	for _, x := range vars {
		if len(v.g.members(x.typ)) == 0 {
			return false
		}
	}
	saved := v.bound
	for _, x := range vars {
		v.bound &^= 1 << uint(x.slot)
	}
	found := v.solve(append([]*formula(nil), kids...), vars, func() bool { return true })
	v.bound = saved
	return found
}

// ground packs the atom's arguments; false if a constant is not an object of this game.
func (v *solver) ground(f *formula) (fact, bool) {
	var k fact
	for i, t := range f.args {
		e := v.term(t)
		if e == nobody {
			return 0, false
		}
		k |= fact(e) << (32 - 16*i)
	}
	return k, true
}

// never is the cost of a conjunct that can only be tested once its variables are bound.
const never = 1 << 30

// cost estimates how many candidates a conjunct has now; 0 is a test.
func (v *solver) cost(f *formula) int {
	if f.free&^v.bound == 0 {
		return 0
	}
	switch f.op {
	case opAtom:
		if v.known(f.args[0]) {
			return 1 + len(withFirst(v.s[f.pred], v.term(f.args[0])))
		}
		n := len(v.s[f.pred])
		if len(f.args) > 1 && v.known(f.args[1]) {
			n /= 4
		}
		return 1 + n
	case opEqual:
		if v.known(f.args[0]) || v.known(f.args[1]) {
			return 1
		}
		return never
	case opNot, opForall:
		return never
	}
	return never - 1 // or, exists: they can still bind
}

// solve calls yield for each assignment of fs; it stops when yield returns true, and returns whether it was stopped.
// vars gives the types of the variables that have to be bound. fs is permuted and restored.
func (v *solver) solve(fs []*formula, vars []variable, yield func() bool) bool {
	if v.work++; v.exhausted() {
		return false
	}
	best, least := -1, never
	for i, f := range fs {
		if c := v.cost(f); c < least {
			best, least = i, c
			if c == 0 {
				break
			}
		}
	}
	if best < 0 {
		return v.enumerate(fs, vars, yield)
	}
	last := len(fs) - 1
	fs[best], fs[last] = fs[last], fs[best]
	stopped := v.take(fs[last], fs[:last], vars, yield)
	fs[best], fs[last] = fs[last], fs[best]
	return stopped
}

// take satisfies f in every possible way and goes on with the rest.
func (v *solver) take(f *formula, rest []*formula, vars []variable, yield func() bool) bool {
	if f.free&^v.bound == 0 {
		return v.holds(f) && v.solve(rest, vars, yield)
	}
	switch f.op {
	case opAtom:
		return v.scan(f, rest, vars, yield)
	case opEqual:
		known, open := f.args[0], f.args[1]
		if !v.known(known) {
			known, open = open, known
		}
		return v.try(int(open), v.term(known), vars, func() bool { return v.solve(rest, vars, yield) })
	case opOr:
		for _, k := range f.kids {
			if v.solve(append(append([]*formula(nil), rest...), flatten(k)...), vars, yield) {
				return true
			}
		}
		return false
	}
	// exists: its variables become ordinary ones; a variable without any candidate makes it false
	for _, x := range f.vars {
		if len(v.g.members(x.typ)) == 0 {
			return false
		}
		v.bound &^= 1 << uint(x.slot)
	}
	all := append(append([]variable(nil), vars...), f.vars...)
	return v.solve(append(append([]*formula(nil), rest...), f.kids...), all, yield)
}

// scan binds the open arguments of an atom to each matching fact.
func (v *solver) scan(f *formula, rest []*formula, vars []variable, yield func() bool) bool {
	list, swapped := v.s[f.pred], false
	if v.known(f.args[0]) {
		list = withFirst(list, v.term(f.args[0]))
	} else if len(f.args) > 1 && v.known(f.args[1]) && v.g.bySecond[f.pred] != nil {
		list, swapped = withFirst(v.g.bySecond[f.pred], v.term(f.args[1])), true
	}
	saved := v.bound
	for _, k := range list {
		if v.work++; v.exhausted() {
			break
		}
		if swapped {
			k = k.swap()
		}
		ok := true
		for i, t := range f.args {
			e := k.arg(i)
			if v.known(t) {
				ok = v.term(t) == e
			} else if ok = v.fits(int(t), e, vars); ok {
				v.bind(int(t), e)
			}
			if !ok {
				break
			}
		}
		if ok && v.solve(rest, vars, yield) {
			v.bound = saved
			return true
		}
		v.bound = saved
	}
	return false
}

func (v *solver) fits(slot int, e entity, vars []variable) bool {
	for i := range vars {
		if vars[i].slot == slot {
			return vars[i].typ == 0 || vars[i].typ == v.g.typ[e]
		}
	}
	return true
}

func (v *solver) try(slot int, e entity, vars []variable, next func() bool) bool {
	if e == nobody || !v.fits(slot, e, vars) {
		return false
	}
	saved := v.bound
	v.bind(slot, e)
	stopped := next()
	v.bound = saved
	return stopped
}

// enumerate binds a variable that no positive conjunct binds to every object of its type.
func (v *solver) enumerate(fs []*formula, vars []variable, yield func() bool) bool {
	for _, x := range vars {
		if v.bound>>uint(x.slot)&1 == 1 {
			continue
		}
		saved := v.bound
		for _, e := range v.g.members(x.typ) {
			if v.work++; v.exhausted() {
				return false
			}
			v.bind(x.slot, e)
			stopped := v.solve(fs, vars, yield)
			v.bound = saved
			if stopped {
				return true
			}
		}
		return false
	}
	if len(fs) > 0 {
		return false // cannot happen: with all variables bound every conjunct is a test
	}
	return yield()
}
