package alfworld

import "slices"

// The small world of level 0: few classes, nothing to open, one object of a class. A model of a few hundred thousand
// parameters learns it in minutes.
var (
	smallPlaces  = []string{"ArmChair", "Bed", "CoffeeTable", "Desk", "Dresser", "Shelf", "SideTable", "Sofa"}
	smallObjects = []string{"Book", "Bowl", "CD", "CellPhone", "CreditCard", "KeyChain", "Laptop", "Mug", "Pen", "Pencil", "Vase", "Watch"}
)

// small furnishes a level 0 room: mostly four receptacles and four objects, sometimes five or six.
func (h *house) small(unseen bool) error {
	count := func() int {
		switch n := h.r.IntN(20); {
		case n < 16:
			return 4
		case n < 19:
			return 5
		}
		return 6
	}
	places := pick(h, smallPlaces, count())
	objects := pick(h, smallObjects, count())
	// the goal is drawn again until its pair belongs to the kind of seed; every room has pairs of both kinds, or the
	// room is drawn again
	var goals [][2]int
	for {
		for i, o := range objects {
			for j, p := range places {
				if reserved(o, p) == unseen {
					goals = append(goals, [2]int{i, j})
				}
			}
		}
		if len(goals) > 0 {
			break
		}
		places, objects = pick(h, smallPlaces, len(places)), pick(h, smallObjects, len(objects))
	}
	goal := goals[h.r.IntN(len(goals))]

	spots := make([]string, len(places))
	ids := make([]string, len(places))
	for j, p := range places {
		ids[j], spots[j] = h.id(p, ""), h.location()
		h.declare(ids[j], "receptacle")
		h.fact("receptacletype", ids[j], h.class(p, "rtype"))
		h.fact("receptacleatlocation", ids[j], spots[j])
	}
	for i, o := range objects {
		at := h.r.IntN(len(places))
		for i == goal[0] && at == goal[1] {
			at = h.r.IntN(len(places))
		}
		id, typ := h.id(o, ""), h.class(o, "otype")
		h.declare(id, "object")
		h.fact("objecttype", id, typ)
		h.fact("pickupable", id)
		h.fact("inreceptacle", id, ids[at])
		h.fact("objectatlocation", id, spots[at])
		for _, p := range places {
			h.fact("cancontain", h.class(p, "rtype"), typ)
		}
	}
	o, p := objects[goal[0]], places[goal[1]]
	h.sentence = sentenceOf(Place, o, p, h.r.IntN(2) == 1)
	h.goalPDDL = goalOf(Place, o, p)
	return h.finish()
}

// pick draws n different entries.
func pick(h *house, from []string, n int) []string {
	list := slices.Clone(from)
	h.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:n]
}
