package rollout

import (
	"encoding/json"

	"agentrl/internal/chat"
	"agentrl/internal/env"
	"agentrl/internal/errs"
	"agentrl/internal/policy"
	"agentrl/internal/trajectory"
)

// grammar restricts decoding where sampling.constrained asks for it: to the admissible calls where the environment
// knows them, otherwise to well-formed calls.
type grammar struct {
	format chat.Format
	known  env.Admissible // nil: not known
	key    map[string]string
}

func newGrammar(format chat.Format, e env.Episode) *grammar {
	g := &grammar{format: format, key: map[string]string{}}
	g.known, _ = e.(env.Admissible)
	for _, t := range format.Tools() {
		if name, ok := SingleParameter(t); ok {
			g.key[t.Name] = name
		}
	}
	return g
}

func (g *grammar) next() (policy.Constraint, error) {
	if g.known != nil {
		tool, arguments := g.known.Admissible()
		key, ok := g.key[tool]
		if ok && len(arguments) > 0 {
			msgs := make([]trajectory.Message, len(arguments))
			for i, a := range arguments {
				msgs[i] = CallMessage(tool, key, a)
			}
			return chat.Admissible(g.format, msgs)
		}
	}
	if f, ok := g.format.(interface{ ToolCallGrammar() policy.Constraint }); ok {
		return f.ToolCallGrammar(), nil
	}
	return nil, errs.New(errs.Invalid, "the chat format cannot restrict decoding; switch sampling.constrained off")
}

// SingleParameter returns the name of a tool's only parameter.
func SingleParameter(t trajectory.Tool) (string, bool) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(t.Parameters, &s) != nil || len(s.Properties) != 1 {
		return "", false
	}
	for name := range s.Properties {
		return name, true
	}
	return "", false
}

// CallMessage is the assistant message that calls a tool with one string argument.
func CallMessage(tool, key, value string) trajectory.Message {
	args, _ := json.Marshal(map[string]string{key: value}) // strings always marshal
	return trajectory.Message{Role: trajectory.Assistant, ToolCalls: []trajectory.ToolCall{
		{ID: "call_1", Name: tool, Arguments: string(args)}}}
}
