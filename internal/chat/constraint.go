package chat

import (
	"agentrl/internal/errs"
	"agentrl/internal/policy"
	"agentrl/internal/trajectory"
)

// trie is a set of token sequences. It is immutable once built.
type trie struct {
	next map[int32]*trie
	end  bool // a sequence may stop here
	tool int  // for names: which tool ends here
}

func (t *trie) add(ids []int32) *trie {
	for _, id := range ids {
		if t.next == nil {
			t.next = map[int32]*trie{}
		}
		child, ok := t.next[id]
		if !ok {
			child = &trie{}
			t.next[id] = child
		}
		t = child
	}
	t.end = true
	return t
}

func (t *trie) allow(mask []bool) {
	for id := range t.next {
		if int(id) < len(mask) {
			mask[id] = true
		}
	}
}

// admissible lets exactly a set of sequences through.
type admissible struct{ root *trie }

// Admissible returns the constraint that lets exactly the encodings of the given messages through, such as the valid
// calls of an environment's present state. It refuses an empty set, which would leave nothing to draw.
func Admissible(f Format, msgs []trajectory.Message) (policy.Constraint, error) {
	if len(msgs) == 0 {
		return nil, errs.New(errs.Invalid, "constrained decoding needs at least one admissible message")
	}
	root := &trie{}
	for _, m := range msgs {
		root.add(f.Assistant(m))
	}
	return admissible{root}, nil
}

// Begin starts at the root.
func (a admissible) Begin() policy.ConstraintState { return &trieState{at: a.root} }

type trieState struct{ at *trie }

func (s *trieState) Allow(mask []bool) {
	if s.at != nil {
		s.at.allow(mask)
	}
}

func (s *trieState) Accept(id int32) {
	if s.at != nil {
		s.at = s.at.next[id]
	}
}
