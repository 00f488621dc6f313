package alfworld

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// brute evaluates a formula by trying every object for every variable.
type brute struct {
	g    *Game
	s    facts
	vals map[int]entity
}

func (b brute) term(t term) entity {
	if t < 0 {
		return b.g.consts[^t]
	}
	return b.vals[int(t)]
}

func (b brute) holds(f *formula) bool {
	switch f.op {
	case opAtom:
		args := make([]entity, len(f.args))
		for i, t := range f.args {
			args[i] = b.term(t)
		}
		return !slices.Contains(args, nobody) && slices.Contains(b.s[f.pred], pack(args))
	case opEqual:
		return b.term(f.args[0]) == b.term(f.args[1])
	case opNot:
		return !b.holds(f.kids[0])
	case opOr:
		return slices.ContainsFunc(f.kids, b.holds)
	case opAnd:
		return !slices.ContainsFunc(f.kids, func(k *formula) bool { return !b.holds(k) })
	}
	all := f.op == opForall
	found := b.some(f.vars, func() bool {
		return slices.ContainsFunc(f.kids, func(k *formula) bool { return !b.holds(k) }) == all
	})
	return found != all
}

func (b brute) some(vars []variable, test func() bool) bool {
	if len(vars) == 0 {
		return test()
	}
	for _, e := range b.g.members(vars[0].typ) {
		b.vals[vars[0].slot] = e
		if b.some(vars[1:], test) {
			return true
		}
	}
	return false
}

// operators lists what is applicable and has a net effect on the state or sets checked.
func (b brute) operators(a *action) []string {
	var out []string
	b.some(a.schema.params, func() bool {
		if slices.ContainsFunc(a.schema.pre, func(k *formula) bool { return !b.holds(k) }) {
			return false
		}
		if a.schema.name == "gotolocation" && b.vals[1] == b.vals[2] {
			return false
		}
		var key []entity
		for i := range a.schema.params {
			key = append(key, b.vals[i])
		}
		out = append(out, fmt.Sprint(key))
		return false
	})
	return out
}

func TestSolverAgainstBruteForce(t *testing.T) {
	t.Parallel()
	goals := []string{
		"", goalOf(Two, "Mug", "Desk"), goalOf(Look, "Mug", "DeskLamp"), goalOf(Heat, "Mug", "Shelf"), goalOf(Clean, "Mug", "Drawer"),
		"(forall (?r - receptacle) (or (not (openable ?r)) (opened ?r) (receptacletype ?r fridgetype)))",
		"(exists (?o - object ?r - receptacle) (and (not (inreceptacle ?o ?r)) (= ?o ?o) (ishot ?o)))",
		"(or (exists (?a - agent) (holdsany ?a)) (and))",
		"(exists (?o - object) (forall (?r - receptacle) (not (inreceptacle ?o ?r))))",
	}
	for i, goal := range goals {
		p := mini{facts: miniWorld, goal: goal}.start(t)
		r := rand.New(rand.NewPCG(1, uint64(i)))
		for range 12 {
			b := brute{p.g, p.s.facts, map[int]entity{}}
			if want := !slices.ContainsFunc(p.g.goal, func(k *formula) bool { return !b.holds(k) }); p.Won() != want {
				t.Errorf("goal %s: won %v, brute force %v", goal, p.Won(), want)
			}
			for j := range p.g.rules.actions {
				a := &p.g.rules.actions[j]
				var got []string
				for _, op := range p.s.ops[j] {
					got = append(got, fmt.Sprint(op.args[:len(a.schema.params)]))
				}
				want := b.operators(a)
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("%s: operators %v, brute force %v", a.schema.name, got, want)
				}
			}
			all := p.Commands()
			if _, err := p.Step(all[r.IntN(len(all))]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// walkGames gives the games of the random walks: generated ones, and published ones where there are any.
func walkGames(t *testing.T) []*Game {
	var out []*Game
	for level := range MaxLevel + 1 {
		generatedGames(t, level, 12, func(_ string, _ int64, g *Game) { out = append(out, g) })
	}
	return out
}

func TestRandomWalks(t *testing.T) {
	t.Parallel()
	for i, g := range walkGames(t) {
		walk(t, g, uint64(i))
	}
}

func TestRandomWalksPublished(t *testing.T) {
	t.Parallel()
	paths, err := LoadDir(filepath.Join(dataDir(t), "transcripts"))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range paths {
		g, err := Open(path, []string{Current, Legacy}[i%2])
		if err != nil {
			t.Fatal(err)
		}
		walk(t, g, uint64(i))
	}
}

// walk takes random commands and checks that each does something, that the kept operators are those of a fresh
// expansion, and that nothing else can be typed.
func walk(t *testing.T, g *Game, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 3))
	p := g.Reset()
	checked := g.rules.d.preds["checked"]
	for range 25 {
		before := p.s
		all := p.Commands()
		if !slices.IsSorted(all) {
			t.Fatalf("commands are not sorted: %q", all)
		}
		c := all[r.IntN(len(all))]
		text, err := p.Step(c)
		if err != nil {
			t.Fatal(err)
		}
		if text == "" || strings.Contains(text, nothing) {
			t.Errorf("%q answers %q", c, text)
		}
		changed := !slices.EqualFunc(before.facts, p.s.facts, slices.Equal[[]fact])
		verb, _, _ := strings.Cut(c, " ")
		if !changed && len(p.s.facts[checked]) == 0 && verb != "clean" && verb != "heat" && verb != "cool" {
			t.Errorf("%q changes nothing", c)
		}
		fresh, err := g.expand(p.s.facts, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(fresh.commands(), p.Commands()) || fresh.won != p.Won() {
			t.Fatalf("after %q: commands %q, fresh %q", c, p.Commands(), fresh.commands())
		}
		say(t, p, c+" please", nothing)
	}
}

func TestWordingRoundTrip(t *testing.T) {
	t.Parallel()
	raw, err := parseGrammar(genGrammarText())
	if err != nil {
		t.Fatal(err)
	}
	legacy := raw.reword(Legacy)
	if legacy.actions["putobject"].template != putTyped.legacy || legacy.symbols["GotoLocation.feedback"][0].RHS != gotoWords.legacy {
		t.Error("the legacy wording is not used")
	}
	back := legacy.reword(Current)
	if !maps.Equal(raw.actions, back.actions) || !maps.EqualFunc(raw.symbols, back.symbols, slices.Equal[[]rawRule]) {
		t.Error("current -> legacy -> current is not the same grammar")
	}
	for _, c := range []string{"move mug 1 to desk 1", "go to desk 1", "look"} {
		if got := translateCommand(translateCommand(c, Legacy), Current); got != c {
			t.Errorf("%q became %q", c, got)
		}
	}
	cur, old := mini{facts: miniWorld}.start(t), mini{facts: miniWorld, wording: Legacy}.start(t)
	offers(t, cur, "help", true)
	offers(t, old, "help", false)
	say(t, old, "go to desk 1", "You arrive at loc 5. On the desk 1, you see a desklamp 1, a egg 1, a knife 1, and a mug 1.")
	say(t, old, "take mug 1 from desk 1", "You pick up the mug 1 from the desk 1.")
	offers(t, old, "put mug 1 in/on shelf 1", true)
	offers(t, old, "move mug 1 to shelf 1", false)
	say(t, old, "put mug 1 in/on shelf 1", "You put the mug 1 in/on the shelf 1.")
	if text, _ := cur.Step("help"); !strings.HasPrefix(text, "You can say:\n") {
		t.Errorf("help answers %q", text)
	}
	if _, err := NewLibrary().Load(mini{facts: miniWorld}.file(t), "modern"); err == nil {
		t.Error("an unknown wording is accepted")
	}
}
