package alfworld

import "agentrl/internal/errs"

// maxPlan is the longest solution an expert may need (env-alfworld.md 9).
const maxPlan = 50

// plan solves the game from its start with full knowledge.
func (g *Game) plan() ([]string, error) {
	p := g.Reset()
	var out []string
	for !p.Won() {
		c, err := p.privileged()
		if err != nil {
			return nil, err
		}
		if len(out) >= maxPlan {
			return nil, errs.New(errs.Internal, "the plan is longer than %d commands", maxPlan)
		}
		if _, err := p.Step(c); err != nil {
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

// view answers questions about the facts of a session by predicate name.
type view struct {
	g *Game
	s facts
}

func (p *Session) view() view { return view{p.g, p.s.facts} }

func (v view) list(pred string) []fact {
	i, ok := v.g.rules.d.preds[pred]
	if !ok {
		return nil
	}
	return v.s[i]
}

func (v view) has(pred string, args ...entity) bool {
	i, ok := v.g.rules.d.preds[pred]
	return ok && v.s.has(i, pack(args))
}

// second returns the first fact's second argument, or nobody.
func (v view) second(pred string, first entity) entity {
	if l := withFirst(v.list(pred), first); len(l) > 0 {
		return l[0].arg(1)
	}
	return nobody
}

// here returns the agent's location and what the agent holds, or nobody.
func (v view) here() (at, held entity) {
	at, held = nobody, nobody
	if l := v.list("atlocation"); len(l) > 0 {
		at = l[0].arg(1)
	}
	if l := v.list("holds"); len(l) > 0 {
		held = l[0].arg(1)
	}
	return at, held
}

// reachable lists the receptacles of a class that have a place to stand, in the order of their ids; class nobody lists
// all.
func (v view) reachable(class entity) []entity {
	var out []entity
	for _, f := range v.list("receptacleatlocation") {
		if class == nobody || v.has("receptacletype", f.arg(0), class) {
			out = append(out, f.arg(0))
		}
	}
	return out
}

// errNoPlan says that the game cannot be won from here.
func errNoPlan(why string) error {
	return errs.New(errs.Conflict, "the expert knows no way to win from here: %s", why)
}

// privileged returns the next command of the expert who knows all facts. It plans from the present state only, so that
// it goes on after any other command.
func (p *Session) privileged() (string, error) {
	v, t := p.view(), p.g.task
	if t.kind == "" {
		return "", errNoPlan("the goal has an unknown shape")
	}
	_, held := v.here()
	if held != nobody && !v.has("objecttype", held, t.object) {
		return p.putAway(held)
	}
	if t.kind == Look {
		return p.planLook(held)
	}
	target := p.target()
	if target == nobody {
		return "", errNoPlan("no receptacle of the goal can be reached and take the object")
	}
	if held == nobody {
		return p.fetch(target)
	}
	if t.process != "" && !v.s.has(t.done, pack([]entity{held})) {
		return p.processHeld(held)
	}
	return p.reach(target, p.put(held, target))
}

// target chooses where to put: the receptacle of the goal's class that has most of the wanted objects already.
func (p *Session) target() entity {
	v, t := p.view(), p.g.task
	best, most := nobody, -1
	for _, r := range v.reachable(t.place) {
		if !v.has("cancontain", t.place, t.object) {
			continue
		}
		n := 0
		for _, f := range v.list("inreceptacle") {
			if f.arg(1) == r && p.counts(f.arg(0)) {
				n++
			}
		}
		if n > most {
			best, most = r, n
		}
	}
	return best
}

// counts reports whether the object fulfils all of the goal but its place.
func (p *Session) counts(o entity) bool {
	v, t := p.view(), p.g.task
	return v.has("objecttype", o, t.object) && (t.process == "" || v.s.has(t.done, pack([]entity{o})))
}

// fetch takes a wanted object that does not lie in the target already; objects in the open come first.
func (p *Session) fetch(target entity) (string, error) {
	v, t := p.view(), p.g.task
	best, from, cost := nobody, nobody, 3
	for _, f := range v.list("inreceptacle") {
		o, r := f.arg(0), f.arg(1)
		if !v.has("objecttype", o, t.object) || !v.has("pickupable", o) || v.second("receptacleatlocation", r) == nobody {
			continue
		}
		if target != nobody && v.has("inreceptacle", o, target) && p.counts(o) || !p.processable(o) {
			continue
		}
		c := 0
		if v.has("openable", r) && !v.has("opened", r) {
			c = 1
		}
		if c < cost {
			best, from, cost = o, r, c
		}
	}
	if best == nobody {
		return "", errNoPlan("no wanted object can be taken")
	}
	return p.reach(from, "take "+p.g.names[best]+" from "+p.g.names[from])
}

func (p *Session) processable(o entity) bool {
	need := map[string]string{"clean": "cleanable", "heat": "heatable", "cool": "coolable"}[p.g.task.process]
	return need == "" || p.view().has(need, o)
}

func (p *Session) processHeld(held entity) (string, error) {
	v := p.view()
	for _, class := range appliances(p.g.task.process) {
		e, ok := p.g.byID(class + "type")
		if !ok {
			continue
		}
		for _, r := range v.reachable(e) {
			return p.reach(r, p.g.task.process+" "+p.g.names[held]+" with "+p.g.names[r])
		}
	}
	return "", errNoPlan("there is nothing to " + p.g.task.process + " with")
}

// appliances lists the classes of receptacles that a process needs.
func appliances(process string) []string {
	return map[string][]string{"clean": {"sinkbasin", "sink"}, "heat": {"microwave"}, "cool": {"fridge"}}[process]
}

func (p *Session) planLook(held entity) (string, error) {
	v, t := p.view(), p.g.task
	if held == nobody {
		return p.fetch(nobody)
	}
	at, _ := v.here()
	for _, f := range v.list("inreceptacle") {
		lamp, r := f.arg(0), f.arg(1)
		if !v.has("objecttype", lamp, t.lamp) || !v.has("toggleable", lamp) || v.second("receptacleatlocation", r) == nobody {
			continue
		}
		if at == v.second("receptacleatlocation", r) {
			return "use " + p.g.names[lamp], nil
		}
		return "go to " + p.g.names[r], nil
	}
	return "", errNoPlan("no lamp can be reached")
}

// putAway frees the hand from something that is not wanted.
func (p *Session) putAway(held entity) (string, error) {
	v := p.view()
	at, _ := v.here()
	typ := v.second("objecttype", held)
	var far string
	for _, r := range v.reachable(nobody) {
		if !v.has("cancontain", v.second("receptacletype", r), typ) {
			continue
		}
		if v.second("receptacleatlocation", r) == at {
			return p.reach(r, p.put(held, r))
		}
		if far == "" {
			far = "go to " + p.g.names[r]
		}
	}
	if far == "" {
		return "", errNoPlan("what is held fits nowhere")
	}
	return far, nil
}

func (p *Session) put(o, r entity) string {
	return putCommand(p.g.names[o], p.g.names[r], p.g.Wording())
}

func putCommand(o, r, wording string) string {
	return translateCommand("move "+o+" to "+r, wording)
}

// reach returns the command if the agent can give it at r now, else the step that brings it closer.
func (p *Session) reach(r entity, command string) (string, error) {
	v := p.view()
	at, _ := v.here()
	switch {
	case v.second("receptacleatlocation", r) != at:
		return "go to " + p.g.names[r], nil
	case p.s.find(command) != nil:
		return command, nil
	case v.has("openable", r) && !v.has("opened", r):
		return "open " + p.g.names[r], nil
	}
	return "", errNoPlan("\"" + command + "\" is not possible")
}

// byID finds an object by its id.
func (g *Game) byID(id string) (entity, bool) {
	lo, hi := 0, len(g.ids)
	for lo < hi {
		m := (lo + hi) / 2
		if g.ids[m] < id {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo < len(g.ids) && g.ids[lo] == id {
		return entity(lo), true
	}
	return nobody, false
}
