package alfworld

import (
	"crypto/sha256"
	"strings"
	"sync"
)

// Library parses rule texts once: the published games share one domain and, but for the goal sentence, one grammar.
// Safe for concurrent use; it holds a bounded number of texts.
type Library struct {
	mu    sync.RWMutex
	rules map[[sha256.Size]byte]*rules
}

// NewLibrary returns an empty cache of parsed rules.
func NewLibrary() *Library { return &Library{rules: map[[sha256.Size]byte]*rules{}} }

const maxLibrary = 64

// goalMark stands for the goal sentence in a grammar text from which it was taken out.
const goalMark = "__goal__"

const goalIntro = "Your task is to: "

// splitGoal takes the goal sentence out of a grammar text, if there is exactly one that is plain text.
func splitGoal(grammar string) (rest, goal string) {
	i := strings.Index(grammar, `"`+goalIntro)
	if i < 0 || strings.Count(grammar, goalIntro) != 1 {
		return grammar, ""
	}
	i++
	n := strings.IndexAny(grammar[i:], "\"\\{}[]#\n")
	if n < 0 || grammar[i+n] != '"' {
		return grammar, ""
	}
	return grammar[:i] + "{" + goalMark + "}" + grammar[i+n:], grammar[i : i+n]
}

// load returns the linked rules of two texts and the goal sentence.
func (l *Library) load(domainText, grammarText, wording string) (*rules, string, error) {
	for what, text := range map[string]string{"pddl_domain": domainText, "grammar": grammarText} {
		if len(text) > maxTextBytes {
			return nil, "", bad("%s has %d bytes; allowed are %d", what, len(text), maxTextBytes)
		}
	}
	rest, goal := splitGoal(grammarText)
	h := sha256.New()
	for _, s := range []string{wording, domainText, rest} {
		sum := sha256.Sum256([]byte(s))
		h.Write(sum[:])
	}
	var key [sha256.Size]byte
	h.Sum(key[:0])
	l.mu.RLock()
	r := l.rules[key]
	l.mu.RUnlock()
	if r != nil {
		return r, goal, nil
	}
	r, err := parseRules(domainText, rest, wording)
	if err != nil {
		return nil, "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.rules) >= maxLibrary {
		clear(l.rules) // one of many foreign rule sets: start over rather than grow
	}
	l.rules[key] = r
	return r, goal, nil
}

func parseRules(domainText, grammarText, wording string) (*rules, error) {
	d, err := parseDomain(domainText)
	if err != nil {
		return nil, err
	}
	g, err := parseGrammar(grammarText)
	if err != nil {
		return nil, err
	}
	if g.symbols["intro"] == nil {
		return nil, bad("grammar: symbol \"intro\" is missing")
	}
	if wording == Current {
		d.addHelp()
	}
	return link(d, g.reword(wording), wording)
}

// addHelp gives a domain of the old wording the action that the current one has.
func (d *domain) addHelp() {
	p, ok := d.preds["checked"]
	agent, known := d.types["agent"]
	if !ok || !known || d.arity[p] != 1 || len(d.schemas) >= maxSchemas {
		return
	}
	for i := range d.schemas {
		if d.schemas[i].name == "help" {
			return
		}
	}
	a := &formula{op: opAtom, pred: p, args: []term{0}, free: 1}
	s := schema{name: "help", params: []variable{{"a", 0, agent}}, eff: []effect{{atom: a}}}
	s.finish(len(d.names))
	d.schemas = append(d.schemas, s)
}
