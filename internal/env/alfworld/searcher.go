package alfworld

import (
	"math"
	"slices"
)

// searcher is the expert who knows only what was seen in the episode: it visits receptacles in the order of how likely
// the wanted thing is there, with noise by seed, until it sees one.
type searcher struct {
	k        *knowledge
	t        wanted
	wording  string
	seed     uint64
	possible map[string]bool // what can be typed now
	uniform  bool            // nothing is more likely anywhere, as at level 0
}

// wanted is the goal as its sentence tells it: classes only.
type wanted struct {
	kind, object, place, lamp, process string
}

func (g *Game) wanted() wanted {
	name := func(e entity) string {
		if e == nobody {
			return ""
		}
		return class(g.ids[e])
	}
	return wanted{g.task.kind, name(g.task.object), name(g.task.place), name(g.task.lamp), g.task.process}
}

func (s *searcher) next() (string, error) {
	switch {
	case s.t.kind == "":
		return "", errNoPlan("the goal has an unknown shape")
	case s.k.held != "" && classOf(s.k.held) != s.t.object:
		return s.drop()
	case s.t.kind == Look && s.k.held != "":
		return s.light()
	case s.k.held == "":
		return s.find()
	case s.t.process != "" && !s.k.processed(s.k.held, s.t.process):
		for _, p := range s.ordered(s.k.places, "") {
			if slices.Contains(appliances(s.t.process), classOf(p)) {
				if c := s.at(p, s.t.process+" "+s.k.held+" with "+p); c != "" {
					return c, nil
				}
			}
		}
		return "", errNoPlan("there is nothing to " + s.t.process + " with")
	}
	for _, p := range s.targets() {
		if c := s.at(p, putCommand(s.k.held, p, s.wording)); c != "" {
			return c, nil
		}
	}
	return "", errNoPlan("there is no " + s.t.place + " that takes it")
}

// at returns the command if it is possible, else the step towards it, or "" if the receptacle does not allow it.
func (s *searcher) at(place, command string) string {
	for _, c := range []string{command, "go to " + place, "open " + place} {
		if s.possible[c] {
			return c
		}
	}
	return ""
}

// targets lists the receptacles of the goal's class, the one with most of the wanted objects first.
func (s *searcher) targets() []string {
	var out []string
	for _, p := range s.ordered(s.k.places, "") {
		if classOf(p) == s.t.place {
			out = append(out, p)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return s.count(b) - s.count(a) })
	return out
}

func (s *searcher) count(place string) int {
	n := 0
	for _, o := range s.k.contents[place] {
		if s.good(o) {
			n++
		}
	}
	return n
}

// good reports whether the object fulfils all of the goal but its place.
func (s *searcher) good(o string) bool {
	return classOf(o) == s.t.object && (s.t.process == "" || s.k.processed(o, s.t.process))
}

// find takes a wanted object that was seen, or goes on searching.
func (s *searcher) find() (string, error) {
	target := ""
	if t := s.targets(); len(t) > 0 {
		target = t[0]
	}
	for _, p := range s.k.places {
		for _, o := range s.k.contents[p] {
			if classOf(o) != s.t.object || p == target && s.good(o) {
				continue
			}
			if c := s.at(p, "take "+o+" from "+p); c != "" {
				return c, nil
			}
		}
	}
	return s.explore(s.t.object)
}

// explore looks into the most likely receptacle that was not seen yet.
func (s *searcher) explore(what string) (string, error) {
	order := s.ordered(s.k.places, what)
	// where the object has to go it seldom is: those receptacles come last
	slices.SortStableFunc(order, func(a, b string) int { return last(a, s.t.place) - last(b, s.t.place) })
	for _, p := range order {
		if s.k.contents[p] != nil {
			continue
		}
		if c := s.at(p, "open "+p); c != "" {
			return c, nil
		}
		if c := "examine " + p; s.possible[c] {
			return c, nil
		}
	}
	// everything was seen: what was put elsewhere by mistake, or is behind a closed door, shows on a second round
	clear(s.k.contents)
	for _, p := range order {
		if c := "go to " + p; s.possible[c] {
			return c, nil
		}
	}
	return "", errNoPlan("there is no receptacle to search")
}

func last(place, class string) int {
	if classOf(place) == class {
		return 1
	}
	return 0
}

// light brings the held object to a lamp.
func (s *searcher) light() (string, error) {
	for _, p := range s.k.places {
		for _, o := range s.k.contents[p] {
			if classOf(o) != s.t.lamp {
				continue
			}
			if c := s.at(p, "use "+o); c != "" {
				return c, nil
			}
		}
	}
	return s.explore(s.t.lamp)
}

// drop puts down something that is not wanted.
func (s *searcher) drop() (string, error) {
	for _, p := range s.k.places {
		if c := putCommand(s.k.held, p, s.wording); s.possible[c] {
			return c, nil
		}
	}
	order := s.ordered(s.k.places, classOf(s.k.held))
	for i, p := range order {
		if p == s.k.at { // it does not take the object: try the next one
			order = append(order[i+1:len(order):len(order)], order[:i]...)
			break
		}
	}
	for _, p := range order {
		if c := "open " + p; s.possible[c] {
			return c, nil
		}
		if c := "go to " + p; s.possible[c] {
			return c, nil
		}
	}
	return "", errNoPlan("what is held fits nowhere")
}

// ordered sorts receptacles by how likely the class is there, with noise that depends on the seed only: drawing without
// replacement in proportion to the prior.
func (s *searcher) ordered(places []string, class string) []string {
	type ranked struct {
		place string
		score float64
	}
	list := make([]ranked, len(places))
	for i, p := range places {
		u := (float64(mix(s.seed, p)>>11) + 0.5) / (1 << 53)
		weight := 1.0
		if !s.uniform {
			weight = prior(class, classOf(p))
		}
		list[i] = ranked{p, math.Log(weight) - math.Log(-math.Log(u))}
	}
	slices.SortStableFunc(list, func(a, b ranked) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].place
	}
	return out
}

// mix hashes a seed and a text to 64 well spread bits.
func mix(seed uint64, s string) uint64 {
	h := seed ^ 0x9E3779B97F4A7C15
	for _, c := range []byte(s) {
		h = (h ^ uint64(c)) * 0x100000001B3
	}
	h ^= h >> 30
	h *= 0xBF58476D1CE4E5B9
	h ^= h >> 27
	h *= 0x94D049BB133111EB
	return h ^ h>>31
}
