package alfworld

import (
	"slices"
	"strings"

	"agentrl/internal/errs"
)

// plan of a room that is being furnished.
type layout struct {
	level    int
	kind     string
	places   []string // receptacle classes, one entry per instance
	fixtures []string
	object   string // goal class
	place    string // goal receptacle class, or lamp class
}

// furnish makes a room of levels 1 to 4 (env-alfworld.md 9). Rooms without a fitting goal are drawn again.
func (h *house) furnish(level int, kind string, unseen bool) error {
	for range 200 {
		l := h.drawRoom(level, kind, unseen)
		if h.drawGoal(l, unseen) {
			h.buildRoom(l)
			return h.finish()
		}
	}
	return errs.New(errs.Internal, "no room with a fitting goal was found")
}

// drawRoom chooses receptacles and fixtures.
func (h *house) drawRoom(level int, kind string, unseen bool) *layout {
	names := roomsFor(kind)
	r := rooms()[names[h.r.IntN(len(names))]]
	template := string(rune('0' + h.r.IntN(3)))
	if unseen {
		template = reservedTemplate
	}
	l := &layout{level: level, kind: kind}
	for _, f := range r.items {
		if !strings.Contains(f.templates, template) {
			continue
		}
		n := f.low + h.r.IntN(f.high-f.low+1)
		switch level {
		case 1:
			n = min(n, 1+h.r.IntN(2))
		case 4:
			n = f.high
		}
		for range n {
			l.places = append(l.places, f.class)
		}
	}
	switch level {
	case 1:
		h.thin(l, 10)
	case 4:
		for want := 34 + h.r.IntN(16); len(l.places) < want; {
			more := []string{"Drawer", "Shelf", "Cabinet", "Drawer"}
			l.places = append(l.places, more[h.r.IntN(len(more))])
		}
	}
	for _, f := range r.fixtures {
		for range f.low + h.r.IntN(f.high-f.low+1) {
			l.fixtures = append(l.fixtures, f.class)
		}
	}
	return l
}

// thin removes receptacles until at most n are left, but never one that the task type needs.
func (h *house) thin(l *layout, n int) {
	for len(l.places) > n {
		i := h.r.IntN(len(l.places))
		switch c := l.places[i]; {
		case l.kind == Clean && c == "SinkBasin", l.kind == Heat && c == "Microwave", l.kind == Cool && c == "Fridge":
			continue
		}
		l.places = slices.Delete(l.places, i, i+1)
	}
}

// drawGoal chooses the goal pair; false if the room has none of the wanted sort.
func (h *house) drawGoal(l *layout, unseen bool) bool {
	need := map[string]string{Clean: "w", Heat: "h", Cool: "c"}[l.kind]
	appliance := map[string]string{Clean: "SinkBasin", Heat: "Microwave", Cool: "Fridge"}[l.kind]
	if appliance != "" && !slices.Contains(l.places, appliance) {
		return false
	}
	targets := slices.Clone(l.places)
	if l.kind == Look {
		if len(h.spots(l, household().byName["desklamp"], "", false)) == 0 {
			return false
		}
		targets = []string{"DeskLamp"}
	}
	slices.Sort(targets)
	targets = slices.Compact(targets)
	var pairs [][2]string
	for i := range household().objects {
		o := &household().objects[i]
		if o.is("-") || need != "" && !o.is(need) {
			continue
		}
		for _, p := range targets {
			_, fits := o.homes[p]
			if l.kind != Look && !fits || reserved(o.name, p) != unseen || p == appliance {
				continue
			}
			if n := len(h.spots(l, o, p, true)); n > 1 || n == 1 && l.kind != Two {
				pairs = append(pairs, [2]string{o.name, p})
			}
		}
	}
	if len(pairs) == 0 {
		return false
	}
	goal := pairs[h.r.IntN(len(pairs))]
	l.object, l.place = goal[0], goal[1]
	return true
}

// spots lists the indices of the receptacles where an object of a class may lie. Wanted objects never lie in the goal's
// class; at level 1 they are in the open, at level 3 behind a door.
func (h *house) spots(l *layout, o *objectClass, goal string, wanted bool) []int {
	var out []int
	for i, p := range l.places {
		if o.homes[p] <= 0 || p == goal {
			continue
		}
		if wanted && (l.level == 1 && openableClass(p) || l.level == 3 && !openableClass(p)) {
			continue
		}
		out = append(out, i)
	}
	return out
}

// draw takes one of the spots in proportion to how usual it is.
func (h *house) draw(l *layout, o *objectClass, spots []int) int {
	total := 0.0
	for _, i := range spots {
		total += o.homes[l.places[i]]
	}
	x := h.r.Float64() * total
	for _, i := range spots {
		if x -= o.homes[l.places[i]]; x < 0 {
			return i
		}
	}
	return spots[len(spots)-1]
}
