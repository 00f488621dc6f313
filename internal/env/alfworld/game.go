package alfworld

import (
	"slices"
	"strconv"
	"strings"
)

// Game is one household with its goal, ready for play. It never changes, so any number of sessions share it.
type Game struct {
	// Walkthrough is the stored solution, in the wording of the game.
	Walkthrough []string

	rules    *rules
	ids      []string // entity -> id, ascending
	typ      []int
	names    []string // entity -> name; empty if no fact mentions it
	byName   map[string]entity
	byType   [][]entity
	consts   []entity
	bySecond [][]fact // per predicate that never changes: facts by second argument, arguments swapped
	start    facts
	goal     []*formula
	goalText string
	task     goalTask
	intro    string
	first    *state
}

// Wording returns the wording of the texts: Current or Legacy.
func (g *Game) Wording() string { return g.rules.wording }

// Goal returns the goal sentence, e.g. "Your task is to: put a pen in drawer."
func (g *Game) Goal() string { return g.goalText }

// members returns the objects of a type; type -1 has none.
func (g *Game) members(typ int) []entity {
	if typ < 0 {
		return nil
	}
	return g.byType[typ]
}

func newGame(r *rules, p *problem, goalText string) (*Game, error) {
	g := &Game{rules: r, goalText: goalText}
	index, err := g.addObjects(p)
	if err != nil {
		return nil, err
	}
	if err := g.addFacts(p, index); err != nil {
		return nil, err
	}
	for _, c := range r.d.consts {
		g.consts = append(g.consts, lookup(index, c))
	}
	c := &compiler{what: "pddl_problem", d: r.d, constant: func(name string) (int, error) {
		e, ok := index[name]
		if !ok {
			return 0, bad("pddl_problem: the goal mentions %q, which is not an object", short(name))
		}
		g.consts = append(g.consts, e)
		return len(g.consts) - 1, nil
	}}
	f, err := c.compile(&p.goal, 0)
	if err != nil {
		return nil, err
	}
	if f.free != 0 {
		return nil, bad("pddl_problem: the goal has a variable that no exists binds")
	}
	g.goal = flatten(f)
	g.task = g.readGoal()
	s, err := g.opening()
	if err != nil {
		return nil, err
	}
	g.first = s
	return g, nil
}

func lookup(index map[string]entity, id string) entity {
	if e, ok := index[id]; ok {
		return e
	}
	return nobody
}

func (g *Game) addObjects(p *problem) (map[string]entity, error) {
	d := g.rules.d
	if len(p.objects) > maxEntities {
		return nil, bad("pddl_problem: there are %d objects; allowed are %d", len(p.objects), maxEntities)
	}
	objects := slices.Clone(p.objects)
	slices.SortFunc(objects, func(a, b typed) int { return strings.Compare(a.name, b.name) })
	g.byType = make([][]entity, len(d.types))
	index := make(map[string]entity, len(objects))
	for _, o := range objects {
		t, ok := d.types[o.typ]
		if !ok {
			return nil, bad("pddl_problem: object %q has the type %q, which the domain does not declare", short(o.name), short(o.typ))
		}
		if e, ok := index[o.name]; ok {
			if g.typ[e] != t {
				return nil, bad("pddl_problem: object %q is declared with two types", short(o.name))
			}
			continue
		}
		e := entity(len(g.ids))
		index[o.name] = e
		g.ids = append(g.ids, o.name)
		g.typ = append(g.typ, t)
		g.byType[0] = append(g.byType[0], e)
		if t != 0 {
			g.byType[t] = append(g.byType[t], e)
		}
	}
	return index, nil
}

func (g *Game) addFacts(p *problem, index map[string]entity) error {
	d := g.rules.d
	g.start = make(facts, 2*len(d.names))
	seen := make([]bool, len(g.ids))
	for i := range p.init {
		a := &p.init[i]
		pred, ok := d.preds[a.pred]
		if !ok {
			return bad("pddl_problem, line %d: predicate %q is not declared in the domain", a.line, short(a.pred))
		}
		if len(a.args) != d.arity[pred] {
			return bad("pddl_problem, line %d: predicate %q takes %d arguments, not %d", a.line, a.pred, d.arity[pred], len(a.args))
		}
		var k [maxArity]entity
		for j, id := range a.args {
			e, ok := index[id]
			if !ok {
				return bad("pddl_problem, line %d: %q is not an object", a.line, short(id))
			}
			k[j] = e
			seen[e] = true
		}
		g.start[pred] = append(g.start[pred], pack(k[:len(a.args)]))
	}
	g.bySecond = make([][]fact, 2*len(d.names))
	for pred := range d.names {
		list := g.start[pred]
		slices.Sort(list)
		list = slices.Compact(list)
		g.start[pred] = list
		if !g.rules.dynamic[pred] && d.arity[pred] == 2 {
			swapped := make([]fact, len(list))
			for i, f := range list {
				swapped[i] = f.swap()
			}
			slices.Sort(swapped)
			g.bySecond[pred] = swapped
		}
	}
	g.addNames(seen)
	return nil
}

// addNames gives names to all objects that facts mention (env-alfworld.md 4.2).
func (g *Game) addNames(seen []bool) {
	g.names = make([]string, len(g.ids))
	g.byName = make(map[string]entity, len(g.ids))
	count := map[string]int{}
	base := make([]string, len(g.ids))
	for e, id := range g.ids {
		if !seen[e] {
			continue
		}
		b, _, found := strings.Cut(id, "_bar_")
		if !found {
			g.names[e] = id + " "
			continue
		}
		if strings.Contains(id, "basin") {
			b += "basin"
		}
		base[e] = b
		count[b]++
	}
	for e, b := range base {
		if b != "" {
			g.names[e] = b + " " + strconv.Itoa(count[b])
			count[b]--
			g.byName[g.names[e]] = entity(e)
		}
	}
}
