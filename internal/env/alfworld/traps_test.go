package alfworld

import (
	"slices"
	"testing"
)

// The traps of env-alfworld.md 7.1, each with a miniature game.

func TestTrap1StrayCommaKillsABranch(t *testing.T) {
	t.Parallel()
	p := mini{facts: miniWorld, domain: swap(t, ":precondition (and (holds ?a ?o)) :effect (and (checked ?o))",
		`:precondition (or (exists (?l - location, ?r - receptacle) (and (atLocation ?a ?l) (receptacleAtLocation ?r ?l)
		 (inReceptacle ?o ?r))) (holds ?a ?o)) :effect (and (checked ?o))`)}.start(t)
	say(t, p, "go to desk 1", "You arrive at desk 1. On the desk 1, you see a desklamp 1, a egg 1, a knife 1, and a mug 1.")
	offers(t, p, "examine mug 1", false)
	offers(t, p, "examine desk 1", true)
	say(t, p, "take mug 1 from desk 1", "You pick up the mug 1 from the desk 1.")
	offers(t, p, "examine mug 1", true)
	offers(t, p, "examine egg 1", false)
	say(t, p, "examine mug 1", "There's nothing special about mug 1.")
}

func TestTrap2NoWalkToWhereOneStands(t *testing.T) {
	t.Parallel()
	p := mini{facts: miniWorld}.start(t)
	offers(t, p, "go to desk 1", true)
	offers(t, p, "go to shelf 1", true)
	if _, err := p.Step("go to desk 1"); err != nil {
		t.Fatal(err)
	}
	offers(t, p, "go to desk 1", false)
	offers(t, p, "go to shelf 1", false) // it shares the location
	offers(t, p, "go to drawer 1", true)
	say(t, p, "go to shelf 1", nothing)
	for range 2 {
		offers(t, p, "look", true) // they exist although checked is set already
		offers(t, p, "examine desk 1", true)
		say(t, p, "look", "You are facing the desk 1, and shelf 1. Next to it, you see nothing.")
	}
}

func TestTrap3DeletedFactsAreRemembered(t *testing.T) {
	t.Parallel()
	off := swap(t, `{"condition": "sliceable(o:object)`, `{"condition": "toggleable(o:object) & not_istoggled(o:object)", "rhs": "This {o.name} is off."},
 {"condition": "sliceable(o:object)`)
	p := mini{facts: miniWorld + "pickupable desklamp.1\n", grammar: off}.start(t)
	say(t, p, "go to desk 1", "You arrive at desk 1. On the desk 1, you see a desklamp 1, a egg 1, a knife 1, and a mug 1.")
	say(t, p, "take desklamp 1 from desk 1", "You pick up the desklamp 1 from the desk 1.")
	say(t, p, "examine desklamp 1", "There's nothing special about desklamp 1.") // isToggled was never true: no negative fact

	p = mini{facts: miniWorld}.start(t)
	for _, c := range []string{"go to desk 1", "take mug 1 from desk 1"} {
		if _, err := p.Step(c); err != nil {
			t.Fatal(err)
		}
	}
	say(t, p, "move mug 1 to shelf 1", "You move the mug 1 to the shelf 1.")
	say(t, p, "look", "You are facing the desk 1, and shelf 1. Next to it, you see a mug 1.")
	say(t, p, "take mug 1 from shelf 1", "You pick up the mug 1 from the shelf 1.")
	say(t, p, "look", "You are facing the desk 1, and shelf 1. Next to it, you see nothing.") // no longer at the location
	say(t, p, "move mug 1 to desk 1", "You move the mug 1 to the desk 1.")
	say(t, p, "look", "You are facing the desk 1, and shelf 1. Next to it, you see a mug 1.") // now not in the shelf any more
}

func TestTrap4UseNeverTurnsOff(t *testing.T) {
	t.Parallel()
	p := mini{facts: miniWorld}.start(t)
	if _, err := p.Step("go to desk 1"); err != nil {
		t.Fatal(err)
	}
	on := p.g.rules.d.preds["ison"]
	for i := range 3 {
		say(t, p, "use desklamp 1", "You turn on the desklamp 1.")
		if got, want := len(p.s.facts[on]), 1-i%2; got != want {
			t.Errorf("after use %d isOn has %d facts, want %d", i+1, got, want)
		}
		if !p.view().has("istoggled", p.g.byName["desklamp 1"]) {
			t.Error("isToggled is lost")
		}
	}
}

func TestTrap5ObjectInTwoReceptacles(t *testing.T) {
	t.Parallel()
	p := mini{facts: miniWorld + "inreceptacle egg.1 shelf.1\n", goal: goalOf(Place, "Egg", "Drawer")}.start(t)
	if _, err := p.Step("go to desk 1"); err != nil {
		t.Fatal(err)
	}
	offers(t, p, "take egg 1 from desk 1", true)
	offers(t, p, "take egg 1 from shelf 1", true)
	say(t, p, "take egg 1 from desk 1", "You pick up the egg 1 from the desk 1.")
	say(t, p, "examine shelf 1", "On the shelf 1, you see a egg 1.") // the other fact stays
	say(t, p, "examine desk 1", "On the desk 1, you see a desklamp 1, a knife 1, and a mug 1.")
}

func TestTrap6ObjectAtAnotherLocation(t *testing.T) {
	t.Parallel()
	p := mini{facts: miniWorld + `
objecttype apple.1 appletype
pickupable apple.1
sliceable apple.1
inreceptacle apple.1 shelf.1
objectatlocation apple.1 loc.5
`}.start(t)
	for _, c := range []string{"go to desk 1", "take knife 1 from desk 1"} {
		if _, err := p.Step(c); err != nil {
			t.Fatal(err)
		}
	}
	offers(t, p, "slice apple 1 with knife 1", false) // it lies in the shelf here, but its location fact is elsewhere
	offers(t, p, "slice egg 1 with knife 1", true)
	say(t, p, "move knife 1 to desk 1", "You move the knife 1 to the desk 1.")
	say(t, p, "take apple 1 from shelf 1", "You pick up the apple 1 from the shelf 1.")
	if !p.view().has("objectatlocation", p.g.byName["apple 1"], entityOf(t, p, "loc.5")) {
		t.Error("taking removed a location fact of another place")
	}
}

func entityOf(t *testing.T, p *Session, short string) entity {
	t.Helper()
	e, ok := p.g.byID(longID(short))
	if !ok {
		t.Fatalf("there is no %s", short)
	}
	return e
}

func TestTrap7VesselsKeepTheirContents(t *testing.T) {
	t.Parallel()
	p := mini{facts: miniWorld + "isreceptacleobject mug.1\ninreceptacleobject egg.1 mug.1\n"}.start(t)
	for _, c := range []string{"go to desk 1", "take egg 1 from desk 1", "go to drawer 1", "go to desk 1", "move egg 1 to desk 1", "take mug 1 from desk 1"} {
		if _, err := p.Step(c); err != nil {
			t.Fatal(err)
		}
	}
	say(t, p, "examine mug 1", "This is a normal mug 1. In it, you see a egg 1.")
	say(t, p, "go to microwave 1", "You arrive at microwave 1. The microwave 1 is closed.")
	say(t, p, "heat mug 1 with microwave 1", "You heat the mug 1 using the microwave 1.")
	say(t, p, "examine mug 1", "This is a normal mug 1. In it, you see a egg 1.") // hides that it is hot
}

func TestTrap8ProcessesNeedNoOpenDoor(t *testing.T) {
	t.Parallel()
	p := mini{facts: miniWorld + "iscool mug.1\n"}.start(t)
	for _, c := range []string{"go to desk 1", "take mug 1 from desk 1"} {
		if _, err := p.Step(c); err != nil {
			t.Fatal(err)
		}
	}
	say(t, p, "examine mug 1", "This is a cold mug 1.")
	for _, s := range [][3]string{
		{"go to microwave 1", "heat mug 1 with microwave 1", "This is a hot mug 1."},
		{"go to sinkbasin 1", "clean mug 1 with sinkbasin 1", "This is a hot and clean mug 1."},
		{"go to fridge 1", "cool mug 1 with fridge 1", "This is a cool and clean mug 1."},
	} {
		if _, err := p.Step(s[0]); err != nil {
			t.Fatal(err)
		}
		offers(t, p, s[1], true)
		if got, err := p.Step(s[1]); err != nil || got == nothing {
			t.Errorf("%s: %q, %v", s[1], got, err)
		}
		offers(t, p, s[1], true) // again, although it changes nothing now
		say(t, p, "examine mug 1", s[2])
	}
	offers(t, p, "open fridge 1", true) // still closed
}

func TestTrap9NoCapacityButOneHand(t *testing.T) {
	t.Parallel()
	p := mini{facts: miniWorld}.start(t)
	for _, c := range []string{"go to desk 1", "take mug 1 from desk 1"} {
		if _, err := p.Step(c); err != nil {
			t.Fatal(err)
		}
	}
	offers(t, p, "take egg 1 from desk 1", false)
	say(t, p, "take egg 1 from desk 1", nothing)
	say(t, p, "inventory", "You are carrying: a mug 1.")
}

func TestTrap10SameTextTakesTheFirstOperator(t *testing.T) {
	t.Parallel()
	// look and inventory get one text: the first action of the domain answers
	p := mini{facts: miniWorld, grammar: swap(t, `action inventory { template :: "inventory"`, `action inventory { template :: "look"`)}.start(t)
	if n := len(p.Commands()); n != len(slices.Compact(p.Commands())) {
		t.Error("a command is listed twice")
	}
	if got, _ := p.Step("look"); got == "You are not carrying anything." {
		t.Error("the later action answered")
	}
}

func TestSharedEntitiesAndLists(t *testing.T) {
	t.Parallel()
	p := mini{facts: miniWorld}.start(t)
	if got, want := p.g.Intro(), "-= Welcome to TextWorld, ALFRED! =-\n\nYou are in the middle of a room. Looking quickly around you, you see "+
		"a desk 1, a drawer 1, a fridge 1, a microwave 1, a shelf 1, and a sinkbasin 1.\n\nYour task is to: put a mug in shelf."; got != want {
		t.Errorf("intro %q, want %q", got, want)
	}
	for _, c := range []string{"Look", "go  to desk 1", "GO TO DESK 1", "", "go to desk"} {
		say(t, p, c, nothing)
	}
	say(t, p, "  inventory\n", "You are not carrying anything.")
	say(t, p, "go to drawer 1", "You arrive at drawer 1. The drawer 1 is closed.")
	say(t, p, "open drawer 1", "You open the drawer 1. The drawer 1 is open. In it, you see nothing.")
	offers(t, p, "open drawer 1", false)
	say(t, p, "close drawer 1", "You close the drawer 1.")
	fork := p.Fork()
	for _, c := range []string{"go to desk 1", "take mug 1 from desk 1", "move mug 1 to shelf 1"} {
		if p.Won() {
			t.Errorf("won before %q", c)
		}
		if _, err := p.Step(c); err != nil {
			t.Fatal(err)
		}
	}
	if !p.Won() || fork.Won() {
		t.Errorf("won %v, fork %v", p.Won(), fork.Won())
	}
	offers(t, fork, "open drawer 1", true)
}
