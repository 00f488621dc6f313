package chat

import "agentrl/internal/policy"

// grammar is the language of one well-formed tool call in the compact format.
type grammar struct {
	c     *Compact
	names *trie  // nil with one tool, whose name is not written
	plain []bool // ordinary tokens by id
}

// ToolCallGrammar returns the constraint that lets exactly one well-formed call of a bound tool through: its name is of
// the set, strings are any text without special tokens, other arguments are complete JSON, and required arguments are
// there. It is nil, which means free, when no tools are bound.
func (c *Compact) ToolCallGrammar() policy.Constraint {
	if len(c.tools) == 0 {
		return nil
	}
	g := &grammar{c: c, plain: make([]bool, c.tok.VocabSize())}
	for id := range g.plain {
		g.plain[id] = len(c.tok.Bytes(int32(id))) > 0
	}
	if len(c.tools) > 1 {
		g.names = &trie{}
		for i, s := range c.schemas {
			g.names.add(c.tok.Encode(s.name)).tool = i
		}
	}
	return g
}

// Begin starts before <|call|>.
func (g *grammar) Begin() policy.ConstraintState { return &grammarState{g: g, name: g.names} }

// grammarState is where a generation stands: before the call, in the name, in argument arg, or at the end.
type grammarState struct {
	g      *grammar
	called bool
	done   bool
	name   *trie // not nil while the name is being written
	tool   int
	arg    int  // index of the argument being written; -1 right after a name
	empty  bool // nothing of the argument is written yet
	json   jsonState
}

func (s *grammarState) args() []argument { return s.g.c.schemas[s.tool].args }

func (s *grammarState) Allow(mask []bool) {
	set := func(id int32, ok bool) {
		if ok && int(id) < len(mask) {
			mask[id] = true
		}
	}
	c := s.g.c
	switch {
	case s.done:
	case !s.called:
		set(c.call, true)
	case s.name != nil:
		s.name.allow(mask)
		if s.name.end {
			args := c.schemas[s.name.tool].args
			set(c.arg, len(args) > 0)
			set(c.end, len(args) == 0 || !args[0].required)
		}
	default:
		args := s.args()
		if s.arg >= len(args) { // a single tool without arguments
			set(c.end, true)
			return
		}
		if args[s.arg].text {
			copy(mask, s.g.plain)
		} else {
			for id, ok := range s.g.plain {
				if ok && id < len(mask) {
					next := s.json
					mask[id] = next.feed(c.tok.Bytes(int32(id)))
				}
			}
		}
		if s.complete() {
			set(c.arg, s.arg+1 < len(args))
			set(c.end, s.arg+1 == len(args) || !args[s.arg+1].required)
		}
	}
}

// complete says whether the argument may end here.
func (s *grammarState) complete() bool {
	a := s.args()[s.arg]
	switch {
	case s.empty:
		// Without a name before it an empty first argument means that it was left out.
		return !a.required || a.text && s.g.names != nil
	case a.text:
		return true
	}
	return s.json.complete()
}

func (s *grammarState) Accept(id int32) {
	c := s.g.c
	switch {
	case s.done:
	case id == c.end:
		s.done = true
	case !s.called:
		s.called = true
		s.empty = true
	case s.name != nil && id == c.arg:
		s.tool, s.name, s.arg, s.empty = s.name.tool, nil, 0, true
	case s.name != nil:
		s.name = s.name.next[id]
		s.done = s.name == nil
	case id == c.arg:
		s.arg++
		s.empty, s.json = true, jsonState{}
	default:
		s.empty = false
		if s.arg < len(s.args()) && !s.args()[s.arg].text {
			s.done = !s.json.feed(c.tok.Bytes(id))
		}
	}
}
