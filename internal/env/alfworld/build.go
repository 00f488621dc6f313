package alfworld

import "strings"

// placed is a receptacle of the room with what lies in it.
type placed struct {
	id, spot string
	vessels  []string // objects that can hold other objects
}

// buildRoom turns a layout with its goal into objects and facts.
func (h *house) buildRoom(l *layout) {
	rs := h.buildReceptacles(l)
	for _, f := range l.fixtures {
		id := h.id(f, "")
		h.declare(id, "object")
		h.fact("objecttype", id, h.class(f, "otype"))
		h.fact("objectatlocation", id, h.location())
		if f == "FloorLamp" {
			h.fact("toggleable", id)
		}
	}
	if lamp := household().byName["desklamp"]; l.kind == Look || h.r.IntN(3) == 0 {
		if spots := h.spots(l, lamp, "", false); len(spots) > 0 {
			h.put(l, rs, lamp, h.draw(l, lamp, spots))
		}
	}
	h.placeWanted(l, rs)
	h.placeOthers(l, rs)
	second := h.r.IntN(2) == 1
	h.sentence = sentenceOf(l.kind, l.object, l.place, second)
	h.goalPDDL = goalOf(l.kind, l.object, l.place)
}

// buildReceptacles gives every receptacle a place to stand; now and then two share one.
func (h *house) buildReceptacles(l *layout) []placed {
	rs := make([]placed, len(l.places))
	shared := 0
	for i, p := range l.places {
		if p == "SinkBasin" || p == "BathtubBasin" {
			rs[i].id = h.id(p[:len(p)-len("Basin")], "_bar_"+strings.ToLower(p))
		} else {
			rs[i].id = h.id(p, "")
		}
		if i > 0 && shared < 8 && h.r.IntN(8) == 0 {
			rs[i].spot = rs[i-1].spot
			shared++
		} else {
			rs[i].spot = h.location()
		}
		h.declare(rs[i].id, "receptacle")
		typ := h.class(p, "rtype")
		h.fact("receptacletype", rs[i].id, typ)
		h.fact("receptacleatlocation", rs[i].id, rs[i].spot)
		if openableClass(p) {
			h.fact("openable", rs[i].id)
		}
	}
	seen := map[string]bool{}
	for _, p := range l.places {
		if seen[p] {
			continue
		}
		seen[p] = true
		for i := range household().objects {
			o := &household().objects[i]
			if _, ok := o.homes[p]; ok && !o.is("-") {
				h.fact("cancontain", h.class(p, "rtype"), h.class(o.name, "otype"))
			}
		}
	}
	return rs
}

// put makes one object in a receptacle.
func (h *house) put(l *layout, rs []placed, o *objectClass, at int) {
	id := h.id(o.name, "")
	h.declare(id, "object")
	h.fact("objecttype", id, h.class(o.name, "otype"))
	h.fact("inreceptacle", id, rs[at].id)
	h.fact("objectatlocation", id, rs[at].spot)
	for letter, pred := range []string{"heatable", "coolable", "cleanable", "sliceable", "isreceptacleobject", "toggleable"} {
		if o.is("hcwsvt"[letter : letter+1]) {
			h.fact(pred, id)
		}
	}
	if !o.is("-") {
		h.fact("pickupable", id)
	}
	if o.is("c") && l.places[at] == "Fridge" && o.name != l.object && h.r.IntN(2) == 0 {
		h.fact("iscool", id)
	}
	if o.is("v") {
		rs[at].vessels = append(rs[at].vessels, id)
	} else if n := len(rs[at].vessels); n > 0 && !o.is("-") && h.r.IntN(6) == 0 {
		h.fact("inreceptacleobject", id, rs[at].vessels[h.r.IntN(n)])
	}
}

// placeWanted makes the objects of the goal's class: one, or two in different receptacles, and some more at the higher
// levels.
func (h *house) placeWanted(l *layout, rs []placed) {
	o := household().byName[strings.ToLower(l.object)]
	spots := h.spots(l, o, l.place, true)
	first := h.draw(l, o, spots)
	h.put(l, rs, o, first)
	if l.kind == Two {
		h.put(l, rs, o, h.apart(l, rs, o, spots, first))
	}
	extra := [...]int{0, 0, 2, 3, 3}[l.level]
	if extra > 0 {
		for range h.r.IntN(extra) {
			h.put(l, rs, o, h.draw(l, o, spots))
		}
	}
}

// apart draws another receptacle than first; at level 4 also another place to stand, if there is one.
func (h *house) apart(l *layout, rs []placed, o *objectClass, spots []int, first int) int {
	var others, far []int
	for _, i := range spots {
		if i != first {
			others = append(others, i)
			if rs[i].spot != rs[first].spot {
				far = append(far, i)
			}
		}
	}
	if l.level == 4 && len(far) > 0 {
		others = far
	}
	return h.draw(l, o, others)
}

// placeOthers fills the room with objects that the goal does not ask for.
func (h *house) placeOthers(l *layout, rs []placed) {
	want := [...]int{0, 8 + h.r.IntN(6), 18 + h.r.IntN(30), 32 + h.r.IntN(14), 49 + h.r.IntN(13)}[l.level]
	var classes []*objectClass
	for i := range household().objects {
		o := &household().objects[i]
		if !o.is("-") && o.name != l.object && len(h.spots(l, o, "", false)) > 0 {
			classes = append(classes, o)
		}
	}
	if len(classes) == 0 {
		return
	}
	for range want {
		o := classes[h.r.IntN(len(classes))]
		h.put(l, rs, o, h.draw(l, o, h.spots(l, o, "", false)))
	}
}
