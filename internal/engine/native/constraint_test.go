package native

import (
	"encoding/json"
	"fmt"
	"testing"

	"agentrl/internal/chat"
	"agentrl/internal/policy"
	"agentrl/internal/trajectory"
)

func TestConstrainedDecoding(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	p := publish(t, e, 0)
	f, err := chat.NewCompact(e.Tokenizer())
	if err != nil {
		t.Fatal(err)
	}
	bound, err := f.With([]trajectory.Tool{{Name: "take_action", Parameters: json.RawMessage(`{"type":"object","properties":{"action":{"type":"string"}},"required":["action"]}`)}})
	if err != nil {
		t.Fatal(err)
	}
	b := chat.NewBuilder(bound, []trajectory.Message{{Role: trajectory.User, Content: "You see a desk 1 and a mug 1."}})
	admissible := map[string]bool{}
	var msgs []trajectory.Message
	for _, a := range []string{"go to desk 1", "go to desk 2", "take mug 1 from desk 1"} {
		args := fmt.Sprintf(`{"action":%q}`, a)
		admissible[args] = true
		msgs = append(msgs, trajectory.Message{Role: trajectory.Assistant, ToolCalls: []trajectory.ToolCall{{Name: "take_action", Arguments: args}}})
	}
	con, err := chat.Admissible(bound, msgs)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for seed := range uint64(60) {
		s := policy.Sampling{Temperature: 8, MaxNewTokens: 32, Seed: seed} // so that fresh weights prefer none
		c := generate(t, p, policy.Prompt{IDs: b.Prompt(), CacheKey: "a", Constraint: con}, s)
		msg, err := bound.Parse(c.IDs)
		if err != nil || c.Finish != trajectory.FinishStop || len(msg.ToolCalls) != 1 || !admissible[msg.ToolCalls[0].Arguments] {
			t.Fatalf("%q is not admissible (%v)", e.Tokenizer().Decode(c.IDs), err)
		}
		seen[msg.ToolCalls[0].Arguments] = true
		if len(c.KeptMass) != len(c.IDs) {
			t.Fatal("a constraint truncates, so the kept mass must be returned")
		}
		free := generate(t, p, policy.Prompt{IDs: b.Prompt()}, s)
		allowAll := generate(t, p, policy.Prompt{IDs: b.Prompt(), CacheKey: "b"}, s)
		if err := sameCompletion(free, allowAll); err != nil || len(free.KeptMass) != 0 {
			t.Errorf("off must change nothing: %v", err)
		}
	}
	if len(seen) != 3 {
		t.Errorf("only %d of 3 admissible calls were drawn", len(seen))
	}
	for seed := range uint64(20) {
		c := generate(t, p, policy.Prompt{IDs: b.Prompt(), Constraint: bound.(*chat.Compact).ToolCallGrammar()}, policy.Sampling{Temperature: 1, MaxNewTokens: 60, Seed: seed})
		if c.Finish != trajectory.FinishStop {
			continue
		}
		if msg, err := bound.Parse(c.IDs); err != nil || len(msg.ToolCalls) != 1 {
			t.Errorf("%q: %v", e.Tokenizer().Decode(c.IDs), err)
		}
	}
}
