package alfworld

import (
	"encoding/json"
	"strings"
)

// rawRule is one alternative of a symbol, as the file has it.
type rawRule struct {
	RHS       string `json:"rhs"`
	Condition string `json:"condition"`
}

// rawAction holds the command template and the feedback of an action.
type rawAction struct {
	template string
	feedback string
}

// rawGrammar is the outer structure of a grammar text (env-alfworld.md 4.4). Action names are lower case, as in the
// domain; symbols keep their case.
type rawGrammar struct {
	symbols map[string][]rawRule
	actions map[string]rawAction
}

func parseGrammar(text string) (*rawGrammar, error) {
	if len(text) > maxTextBytes {
		return nil, bad("grammar has %d bytes; allowed are %d", len(text), maxTextBytes)
	}
	p := &grammarReader{s: text}
	g := &rawGrammar{symbols: map[string][]rawRule{}, actions: map[string]rawAction{}}
	for {
		p.space()
		if p.i >= len(p.s) {
			return g, nil
		}
		word := p.word()
		var err error
		switch word {
		case "grammar":
			err = p.symbols(g)
		case "action":
			err = p.action(g)
		default:
			err = p.bad("here grammar or action is expected, not %q", p.near(word))
		}
		if err != nil {
			return nil, err
		}
	}
}

type grammarReader struct {
	s string
	i int
}

func (p *grammarReader) bad(format string, args ...any) error {
	line := 1 + strings.Count(p.s[:min(p.i, len(p.s))], "\n")
	return bad("grammar, line %d: "+format, append([]any{line}, args...)...)
}

func (p *grammarReader) near(word string) string {
	if word != "" {
		return word
	}
	rest := p.s[min(p.i, len(p.s)):]
	return rest[:min(12, len(rest))]
}

func (p *grammarReader) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\t', '\r', '\n':
			p.i++
		case '#':
			for p.i < len(p.s) && p.s[p.i] != '\n' {
				p.i++
			}
		default:
			return
		}
	}
}

func isWordByte(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (p *grammarReader) word() string {
	p.space()
	start := p.i
	for p.i < len(p.s) && isWordByte(p.s[p.i]) {
		p.i++
	}
	return p.s[start:p.i]
}

func (p *grammarReader) expect(token string) error {
	p.space()
	if !strings.HasPrefix(p.s[p.i:], token) {
		return p.bad("%q is missing before %q", token, p.near(""))
	}
	p.i += len(token)
	return nil
}

// text reads """...""" or "...".
func (p *grammarReader) text() (string, error) {
	p.space()
	rest := p.s[p.i:]
	if strings.HasPrefix(rest, `"""`) {
		n := strings.Index(rest[3:], `"""`)
		if n < 0 {
			return "", p.bad("the text opened here with three quotes does not end")
		}
		p.i += n + 6
		return rest[3 : 3+n], nil
	}
	if !strings.HasPrefix(rest, `"`) {
		return "", p.bad("a quoted text is missing before %q", p.near(""))
	}
	for j := 1; j < len(rest); j++ {
		switch rest[j] {
		case '\\':
			j++
		case '"':
			p.i += j + 1
			return strings.ReplaceAll(rest[1:j], `\"`, `"`), nil
		}
	}
	return "", p.bad("the text opened here with a quote does not end")
}

// symbols reads `:: """<json>""";` and lets later definitions replace earlier ones.
func (p *grammarReader) symbols(g *rawGrammar) error {
	if err := p.expect("::"); err != nil {
		return err
	}
	at := p.i
	text, err := p.text()
	if err != nil {
		return err
	}
	if err := p.expect(";"); err != nil {
		return err
	}
	if depth := jsonDepth(text); depth > maxDepth {
		return p.bad("the JSON is nested deeper than %d", maxDepth)
	}
	var m map[string][]rawRule
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		p.i = at
		return p.bad("this is not a JSON object of symbols with lists of rules: %v", err)
	}
	for name, rules := range m {
		g.symbols[strings.ReplaceAll(name, " ", "")] = rules
	}
	return nil
}

func (p *grammarReader) action(g *rawGrammar) error {
	name := strings.ToLower(p.word())
	if name == "" {
		return p.bad("the action has no name")
	}
	if err := p.expect("{"); err != nil {
		return err
	}
	var a rawAction
	for {
		p.space()
		if strings.HasPrefix(p.s[p.i:], "}") {
			p.i++
			g.actions[name] = a
			return nil
		}
		key := p.word()
		switch key {
		case "grammar":
			if err := p.symbols(g); err != nil {
				return err
			}
			continue
		case "template", "feedback":
		default:
			return p.bad("%q is not supported in action %s; allowed are template, feedback and grammar", p.near(key), name)
		}
		if err := p.expect("::"); err != nil {
			return err
		}
		text, err := p.text()
		if err != nil {
			return err
		}
		if err := p.expect(";"); err != nil {
			return err
		}
		if key == "template" {
			a.template = text
		} else {
			a.feedback = strings.TrimPrefix(text, "\n")
		}
	}
}

// jsonDepth measures nesting without building anything, so that a hostile text costs no stack.
func jsonDepth(s string) int {
	depth, most, quoted := 0, 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return most
}
