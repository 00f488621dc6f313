package alfworld

import (
	"maps"
	"strings"
)

// The two wordings of the game (env-alfworld.md 4.1, 4.5): Current since release 0.4, Legacy before it.
const (
	Current = "current"
	Legacy  = "legacy"
)

// reworded is a text that differs between the wordings.
type reworded struct{ current, legacy string }

var (
	gotoWords = reworded{"You arrive at {r.name}. #examineReceptacle.feedback#", "You arrive at {lend.name}. #examineReceptacle.feedback#"}
	putWords  = reworded{"You move the {o.name} to the {r.name}.", "You put the {o.name} in/on the {r.name}."}
	putTyped  = reworded{"move {o} to {r}", "put {o} in/on {r}"}
)

func (w reworded) in(wording string) string {
	if wording == Legacy {
		return w.legacy
	}
	return w.current
}

// change returns text in the wording if it is known in either; other texts stay.
func (w reworded) change(text, wording string) string {
	if text == w.current || text == w.legacy {
		return w.in(wording)
	}
	return text
}

// reword translates a grammar. The help action, which Legacy does not have, is dropped when the rules are linked, so
// that translating back restores the same texts.
func (g *rawGrammar) reword(wording string) *rawGrammar {
	out := &rawGrammar{symbols: maps.Clone(g.symbols), actions: maps.Clone(g.actions)}
	for name, w := range map[string]reworded{"GotoLocation.feedback": gotoWords, "PutObject.feedback": putWords} {
		rules := append([]rawRule(nil), out.symbols[name]...)
		for i := range rules {
			rules[i].RHS = w.change(rules[i].RHS, wording)
		}
		if rules != nil {
			out.symbols[name] = rules
		}
	}
	if a, ok := out.actions["putobject"]; ok {
		a.template = putTyped.change(a.template, wording)
		out.actions["putobject"] = a
	}
	if _, ok := out.actions["help"]; !ok && wording == Current {
		out.actions["help"] = rawAction{template: "help", feedback: helpText}
	}
	return out
}

// translateCommand turns a typed command of one wording into the other.
func translateCommand(cmd, wording string) string {
	if wording == Legacy {
		if rest, ok := strings.CutPrefix(cmd, "move "); ok {
			if o, r, ok := strings.Cut(rest, " to "); ok {
				return "put " + o + " in/on " + r
			}
		}
		return cmd
	}
	if rest, ok := strings.CutPrefix(cmd, "put "); ok {
		if o, r, ok := strings.Cut(rest, " in/on "); ok {
			return "move " + o + " to " + r
		}
	}
	return cmd
}

const helpText = `You can say:
look, inventory, go to (place), open (place), close (place), examine (thing),
take (thing) from (place), move (thing) to (place), use (thing), slice (thing) with (thing),
heat (thing) with (place), clean (thing) with (place), cool (thing) with (place)
`
