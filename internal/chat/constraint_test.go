package chat

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"agentrl/internal/policy"
	"agentrl/internal/trajectory"
)

// walk draws uniformly among the allowed tokens until the stop token, preferring ends after limit tokens.
func walk(t *testing.T, c *Compact, con policy.Constraint, rng *rand.Rand, limit int) []int32 {
	t.Helper()
	st := con.Begin()
	var out []int32
	for len(out) < limit+60 {
		mask := make([]bool, c.tok.VocabSize()+5)
		st.Allow(mask)
		var allowed []int32
		for id, ok := range mask {
			if ok {
				allowed = append(allowed, int32(id))
			}
		}
		if len(allowed) == 0 {
			t.Fatalf("nothing is allowed after %s", c.tok.Decode(out))
		}
		id := allowed[rng.IntN(len(allowed))]
		for _, special := range []int32{c.end, c.arg} {
			if mask[special] && (len(out) >= limit || rng.IntN(4) == 0) {
				id = special
				break
			}
		}
		out = append(out, id)
		st.Accept(id)
		if id == c.end {
			return out
		}
	}
	return nil
}

func TestToolCallGrammarYieldsOnlyWellFormedCalls(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]*Compact{"one": newFormat(t, act), "several": newFormat(t, several...), "no arguments": newFormat(t, several[2]), "optional": newFormat(t, several[3])} {
		seen, ended := map[string]bool{}, 0
		for range 400 {
			ids := walk(t, c, c.ToolCallGrammar(), rng, 12)
			if ids == nil {
				continue // a JSON value that did not close in time
			}
			ended++
			msg, err := c.Parse(ids)
			if err != nil || len(msg.ToolCalls) != 1 || msg.Content != "" {
				t.Fatalf("%s: %s: %v", name, c.tok.Decode(ids), err)
			}
			seen[msg.ToolCalls[0].Name] = true
			if !json.Valid([]byte(msg.ToolCalls[0].Arguments)) {
				t.Fatalf("%s: %s", name, msg.ToolCalls[0].Arguments)
			}
		}
		if len(seen) != len(c.tools) || ended < 200 {
			t.Errorf("%s: %d of %d tools were called in %d ended walks", name, len(seen), len(c.tools), ended)
		}
	}
	if newFormat(t).ToolCallGrammar() != nil {
		t.Error("without tools decoding must be free")
	}
}

func TestGrammarAcceptsEveryEncoding(t *testing.T) {
	t.Parallel()
	one, many := newFormat(t, act), newFormat(t, several...)
	for _, tt := range []struct {
		c    *Compact
		call trajectory.ToolCall
	}{
		{one, call("take_action", `{"action":"go to desk 1"}`)},
		{many, call("search", `{"zeta":"a","alpha":-10}`)},
		{many, call("search", `{"zeta":"","alpha":{"k":[1.5e-3,"x\n",null,{}]},"opt":true}`)},
		{many, call("finish", `{}`)},
		{many, call("note", `{"text":"x"}`)},
	} {
		st := tt.c.ToolCallGrammar().Begin()
		for i, id := range tt.c.Assistant(assistant("", tt.call)) {
			mask := make([]bool, tt.c.tok.VocabSize())
			st.Allow(mask)
			if !mask[id] {
				t.Errorf("%s: token %d (%q) is refused", tt.call.Arguments, i, tt.c.tok.Token(id))
				break
			}
			st.Accept(id)
		}
	}
}

func TestAdmissibleYieldsExactlyTheSet(t *testing.T) {
	t.Parallel()
	c := newFormat(t, act)
	var msgs []trajectory.Message
	want := map[string]bool{}
	for _, a := range []string{"go to desk 1", "go to desk 2", "go to desk", "take mug 1 from desk 1", "look"} {
		args, _ := json.Marshal(map[string]string{"action": a})
		msgs = append(msgs, assistant("", call("take_action", string(args))))
		want[string(args)] = true
	}
	con, err := Admissible(c, msgs)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	got := map[string]bool{}
	for range 300 {
		msg, err := c.Parse(walk(t, c, con, rng, 12))
		if err != nil {
			t.Fatal(err)
		}
		got[msg.ToolCalls[0].Arguments] = true
	}
	for a := range got {
		if !want[a] {
			t.Errorf("%s is not admissible", a)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d of %d admissible calls were drawn", len(got), len(want))
	}
	if _, err := Admissible(c, nil); err == nil {
		t.Error("an empty set was accepted")
	}
}

func FuzzJSONState(f *testing.F) {
	for _, s := range []string{`{"a":[1,-2.5e+3,"x\"y",true,null,{}]}`, `[]`, `0`, `-`, `01`, `1.`, `"\u0041"`, `{"a":1,}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var st jsonState
		ok := st.feed([]byte(s))
		if ok && st.complete() && !json.Valid([]byte(s)) {
			t.Fatalf("%q was taken for JSON", s)
		}
	})
}
