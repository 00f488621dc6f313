package alfworld

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// house collects the objects and facts of a game that is being generated.
type house struct {
	problem
	r        *rand.Rand
	sentence string
	goalPDDL string
	used     map[string]bool
}

func newHouse(r *rand.Rand) *house { return &house{r: r, used: make(map[string]bool, 64)} }

// signed writes a number of hundredths as THOR ids do: "_minus_00_dot_73".
func signed(b []byte, hundredths int) []byte {
	if hundredths < 0 {
		b = append(b, "_minus_"...)
		hundredths = -hundredths
	} else {
		b = append(b, "_plus_"...)
	}
	w, f := hundredths/100, hundredths%100
	b = append(b, byte('0'+w/10%10), byte('0'+w%10))
	b = append(b, "_dot_"...)
	return append(b, byte('0'+f/10), byte('0'+f%10))
}

// id makes a new id of a class with random coordinates.
func (h *house) id(class, suffix string) string {
	for {
		b := append(make([]byte, 0, 96), strings.ToLower(class)...)
		for _, limit := range [3]int{500, 250, 500} {
			b = append(b, "_bar_"...)
			n := h.r.IntN(2*limit) - limit
			if limit == 250 {
				n = h.r.IntN(limit)
			}
			b = signed(b, n)
		}
		b = append(b, suffix...)
		if id := string(b); !h.used[id] {
			h.used[id] = true
			return id
		}
	}
}

// location makes a new place to stand.
func (h *house) location() string {
	for {
		b := append(make([]byte, 0, 64), "loc"...)
		for _, n := range [2]int{h.r.IntN(41) - 20, h.r.IntN(41) - 20} {
			b = append(b, "_bar_"...)
			if n < 0 {
				b, n = append(b, "_minus_"...), -n
			}
			b = fmt.Appendf(b, "%d", n)
		}
		b = fmt.Appendf(b, "_bar_%d_bar_%d", h.r.IntN(4), [4]int{0, 30, 45, 60}[h.r.IntN(4)])
		if id := string(b); !h.used[id] {
			h.used[id] = true
			h.declare(id, "location")
			return id
		}
	}
}

func (h *house) declare(id, typ string) { h.objects = append(h.objects, typed{id, typ}) }

func (h *house) fact(pred string, args ...string) {
	h.init = append(h.init, atom{pred: pred, args: args})
}

// class declares a type object once.
func (h *house) class(name, kind string) string {
	id := strings.ToLower(name) + "type"
	if !h.used[id] {
		h.used[id] = true
		h.declare(id, kind)
	}
	return id
}

// finish sets agent and goal.
func (h *house) finish() error {
	h.declare("agent1", "agent")
	h.fact("atlocation", "agent1", h.location())
	goal, err := readSexpr("goal", h.goalPDDL)
	h.goal = goal
	return err
}

// text writes the problem as PDDL.
func (h *house) text(seed int64) string {
	var b strings.Builder
	b.Grow(128 * (len(h.objects) + len(h.init)))
	fmt.Fprintf(&b, "(define (problem house_%d)\n(:domain household)\n(:objects\n", seed)
	for _, o := range h.objects {
		b.WriteString(" " + o.name + " - " + o.typ + "\n")
	}
	b.WriteString(")\n(:init\n")
	for _, f := range h.init {
		b.WriteString(" (" + f.pred)
		for _, a := range f.args {
			b.WriteString(" " + a)
		}
		b.WriteString(")\n")
	}
	b.WriteString(")\n(:goal " + h.goalPDDL + ")\n)\n")
	return b.String()
}

// sentenceOf and goalOf write a goal for people and for the engine (env-alfworld.md 4.6).
func sentenceOf(kind, object, place string, second bool) string {
	o, p := strings.ToLower(object), strings.ToLower(place)
	forms := map[string][2]string{
		Place: {"put a " + o + " in " + p, "put some " + o + " on " + p},
		Clean: {"put a clean " + o + " in " + p, "clean some " + o + " and put it in " + p},
		Heat:  {"put a hot " + o + " in " + p, "heat some " + o + " and put it in " + p},
		Cool:  {"put a cool " + o + " in " + p, "cool some " + o + " and put it in " + p},
		Two:   {"put two " + o + " in " + p, "find two " + o + " and put them in " + p},
		Look:  {"look at " + o + " under the " + p, "examine the " + o + " with the " + p},
	}[kind]
	i := 0
	if second {
		i = 1
	}
	return goalIntro + forms[i] + "."
}

func goalOf(kind, object, place string) string {
	ot, pt := strings.ToLower(object)+"type", strings.ToLower(place)+"type"
	extra := ""
	switch kind {
	case Look:
		return "(and (exists (?x - object ?r - receptacle ?a - agent ?l - location)" +
			" (and (objecttype ?x " + pt + ") (toggleable ?x) (istoggled ?x) (receptacleatlocation ?r ?l) (atlocation ?a ?l) (inreceptacle ?x ?r)))" +
			" (exists (?o - object ?a - agent) (and (objecttype ?o " + ot + ") (holds ?a ?o))))"
	case Two:
		extra = " (exists (?p - object) (and (not (= ?o ?p)) (objecttype ?p " + ot + ") (inreceptacle ?p ?r)))"
	case Clean:
		extra = " (cleanable ?o) (isclean ?o)"
	case Heat:
		extra = " (heatable ?o) (ishot ?o)"
	case Cool:
		extra = " (coolable ?o) (iscool ?o)"
	}
	return "(and (exists (?r - receptacle) (exists (?o - object) (and (inreceptacle ?o ?r) (objecttype ?o " + ot +
		") (receptacletype ?r " + pt + ")" + extra + "))))"
}
