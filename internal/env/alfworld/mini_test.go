package alfworld

import (
	"slices"
	"strings"
	"testing"
)

// mini describes a miniature game: ids by type, facts and a goal. Ids of things are written short ("mug.1") and get the
// form of the published ones.
type mini struct {
	facts   string // one per line
	goal    string
	domain  func(string) string
	grammar func(string) string
	wording string
}

const miniWorld = `
atlocation agent1 loc.0
receptacletype desk.1 desktype
receptacleatlocation desk.1 loc.1
receptacletype shelf.1 shelftype
receptacleatlocation shelf.1 loc.1
receptacletype drawer.1 drawertype
receptacleatlocation drawer.1 loc.2
openable drawer.1
receptacletype fridge.1 fridgetype
receptacleatlocation fridge.1 loc.3
openable fridge.1
receptacletype microwave.1 microwavetype
receptacleatlocation microwave.1 loc.4
openable microwave.1
receptacletype sink.1.basin sinkbasintype
receptacleatlocation sink.1.basin loc.5
objecttype mug.1 mugtype
inreceptacle mug.1 desk.1
objectatlocation mug.1 loc.1
pickupable mug.1
heatable mug.1
coolable mug.1
cleanable mug.1
objecttype egg.1 eggtype
inreceptacle egg.1 desk.1
objectatlocation egg.1 loc.1
pickupable egg.1
sliceable egg.1
heatable egg.1
objecttype knife.1 knifetype
inreceptacle knife.1 desk.1
objectatlocation knife.1 loc.1
pickupable knife.1
objecttype desklamp.1 desklamptype
inreceptacle desklamp.1 desk.1
objectatlocation desklamp.1 loc.1
toggleable desklamp.1
cancontain desktype mugtype
cancontain shelftype mugtype
cancontain drawertype mugtype
cancontain desktype eggtype
cancontain desktype knifetype
`

func longID(short string) string {
	base, rest, ok := strings.Cut(short, ".")
	if !ok {
		return short
	}
	n, basin, _ := strings.Cut(rest, ".")
	if base == "loc" {
		return "loc_bar_" + n + "_bar_0_bar_0_bar_30"
	}
	id := base + "_bar__plus_0" + n + "_dot_00_bar__plus_00_dot_50_bar__minus_01_dot_00"
	if basin != "" {
		id += "_bar_" + base + basin
	}
	return id
}

// place types the arguments of the predicates of miniature games.
var miniTypes = map[string][]string{
	"atlocation": {"agent", "location"}, "receptacletype": {"receptacle", "rtype"}, "receptacleatlocation": {"receptacle", "location"},
	"openable": {"receptacle"}, "opened": {"receptacle"}, "inreceptacle": {"object", "receptacle"}, "objectatlocation": {"object", "location"},
	"objecttype": {"object", "otype"}, "cancontain": {"rtype", "otype"}, "inreceptacleobject": {"object", "object"},
}

func (m mini) file(t testing.TB) *File {
	t.Helper()
	types := map[string]string{}
	var init strings.Builder
	for _, line := range strings.Split(m.facts, "\n") {
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		init.WriteString("(" + w[0])
		for i, a := range w[1:] {
			typ := "object"
			if ts := miniTypes[w[0]]; ts != nil {
				typ = ts[i]
			}
			types[longID(a)] = typ
			init.WriteString(" " + longID(a))
		}
		init.WriteString(")\n")
	}
	var objects strings.Builder
	for id, typ := range types {
		objects.WriteString(id + " - " + typ + "\n")
	}
	if m.goal == "" {
		m.goal = goalOf(Place, "Mug", "Shelf")
	}
	f := &File{
		Domain:   genDomain,
		Grammar:  strings.Replace(genGrammarText(), genGoal, goalIntro+"put a mug in shelf.", 1),
		Problem:  "(define (problem mini) (:domain household) (:objects " + objects.String() + ") (:init " + init.String() + ") (:goal " + m.goal + "))",
		Solvable: true, Walkthrough: []string{},
	}
	if m.domain != nil {
		f.Domain = m.domain(f.Domain)
	}
	if m.grammar != nil {
		f.Grammar = m.grammar(f.Grammar)
	}
	return f
}

func (m mini) start(t testing.TB) *Session {
	t.Helper()
	if m.wording == "" {
		m.wording = Current
	}
	g, err := NewLibrary().Load(m.file(t), m.wording)
	if err != nil {
		t.Fatal(err)
	}
	return g.Reset()
}

// say steps and compares the answer.
func say(t *testing.T, p *Session, command, want string) {
	t.Helper()
	got, err := p.Step(command)
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Errorf("%q: got %q, want %q", command, got, want)
	}
}

func offers(t *testing.T, p *Session, command string, want bool) {
	t.Helper()
	if got := slices.Contains(p.Commands(), command); got != want {
		t.Errorf("%q is offered: %v, want %v; all: %q", command, got, want, p.Commands())
	}
}

func swap(t testing.TB, old, new string) func(string) string {
	return func(s string) string {
		t.Helper()
		if !strings.Contains(s, old) {
			t.Fatalf("the text to change is not there: %q", old)
		}
		return strings.Replace(s, old, new, 1)
	}
}
