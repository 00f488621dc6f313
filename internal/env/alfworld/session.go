package alfworld

import "strings"

// nothing is the answer to a command that is not possible.
const nothing = "Nothing happens."

// Session is one playing of a game. It is a value of a few words over shared, unchanging states: a copy is a fork.
type Session struct {
	g *Game
	s *state
}

// Reset begins the game.
func (g *Game) Reset() *Session { return &Session{g: g, s: g.first} }

// Intro returns the opening text: welcome, what is around, and the goal, separated by empty lines.
func (g *Game) Intro() string { return g.intro }

// Commands returns what can be typed now, in code-point order.
func (p *Session) Commands() []string { return p.s.commands() }

// Won reports whether the goal holds now.
func (p *Session) Won() bool { return p.s.won }

// Fork returns an independent session in the same state.
func (p *Session) Fork() *Session { q := *p; return &q }

// Step runs a command and returns the answer. A command that is not possible changes nothing. An error means that the
// game file asks for more than the limits allow.
func (p *Session) Step(command string) (text string, err error) {
	op := p.s.find(strings.TrimSpace(command))
	if op == nil {
		return nothing, nil
	}
	fs, changed := p.g.apply(p.s, op)
	next, err := p.g.expand(fs, p.s, changed)
	if err != nil {
		return "", err
	}
	a := &p.g.rules.actions[op.action]
	w := newRenderer(p.g, fs)
	w.reset(a.params, op.args[:])
	w.segments(a.feedback)
	if w.failed {
		return "", bad("grammar: the feedback of %q is too long or does not end", a.schema.name)
	}
	p.s = next
	return w.out.String(), nil
}
