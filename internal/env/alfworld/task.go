package alfworld

import "strings"

// goalTask is a goal formula in the six shapes of env-alfworld.md 4.6. Classes are the object ids of types, such as
// "pentype"; kind is empty if the goal has another shape.
type goalTask struct {
	kind    string // Place, Clean, Heat, Cool, Two or Look
	object  entity // otype
	place   entity // rtype; nobody for Look
	lamp    entity // otype; Look only
	process string // clean, heat or cool; the state predicate is in done
	done    int
}

// The task types.
const (
	Place = "pick_and_place"
	Clean = "pick_clean_then_place"
	Heat  = "pick_heat_then_place"
	Cool  = "pick_cool_then_place"
	Look  = "look_at_obj"
	Two   = "pick_two_obj"
)

// Kinds lists the task types in the order in which generated games alternate.
func Kinds() []string { return []string{Place, Clean, Heat, Cool, Look, Two} }

// Kind returns the task type of the goal, or "" if it has another shape.
func (g *Game) Kind() string { return g.task.kind }

// readGoal recognises the shape of the goal.
func (g *Game) readGoal() goalTask {
	t := goalTask{object: nobody, place: nobody, lamp: nobody, done: -1}
	types := map[int]entity{} // variable slot -> otype
	toggled, held := -1, -1
	different := false
	var walk func(fs []*formula)
	walk = func(fs []*formula) {
		for _, f := range fs {
			switch f.op {
			case opNot:
				different = different || f.kids[0].op == opEqual
				continue
			case opAtom:
			default:
				walk(f.kids)
				continue
			}
			name := g.rules.d.names[f.pred]
			switch name {
			case "objecttype":
				if f.args[0] >= 0 && f.args[1] < 0 {
					types[int(f.args[0])] = g.consts[^f.args[1]]
				}
			case "receptacletype":
				if f.args[1] < 0 {
					t.place = g.consts[^f.args[1]]
				}
			case "isclean", "ishot", "iscool":
				t.done = f.pred
				t.process = map[string]string{"isclean": "clean", "ishot": "heat", "iscool": "cool"}[name]
			case "istoggled":
				toggled = int(f.args[0])
			case "holds":
				held = int(f.args[1])
			}
		}
	}
	walk(g.goal)
	if toggled >= 0 && held >= 0 {
		lamp, ok1 := types[toggled]
		object, ok2 := types[held]
		if ok1 && ok2 {
			t.kind, t.lamp, t.object = Look, lamp, object
		}
		return t
	}
	for _, o := range types {
		t.object = o
	}
	if t.place == nobody || t.object == nobody {
		return t
	}
	t.kind = Place
	switch {
	case different:
		t.kind = Two
	case t.process != "":
		t.kind = map[string]string{"clean": Clean, "heat": Heat, "cool": Cool}[t.process]
	}
	return t
}

// class turns the id of a type into the class as it is written in names: "sinkbasintype" is "sinkbasin".
func class(id string) string { return strings.TrimSuffix(id, "type") }
