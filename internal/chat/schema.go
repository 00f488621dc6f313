package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"agentrl/internal/errs"
	"agentrl/internal/trajectory"
)

// schema is what the formats need of a tool's JSON schema: the arguments in order.
type schema struct {
	name string
	args []argument
}

type argument struct {
	name     string
	text     bool // a string; anything else is written as JSON
	required bool
}

// parseSchema reads the properties in the order in which the schema lists them.
func parseSchema(t trajectory.Tool) (schema, error) {
	s := schema{name: t.Name}
	bad := func(what string) (schema, error) {
		return schema{}, errs.New(errs.Invalid, "tool %q: %s; parameters must be a JSON schema of type object with properties", t.Name, what)
	}
	if t.Name == "" {
		return bad("it has no name")
	}
	if len(bytes.TrimSpace(t.Parameters)) == 0 {
		return s, nil
	}
	var top struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(t.Parameters, &top); err != nil {
		return bad("its parameters are not readable (" + err.Error() + ")")
	}
	if top.Type != "" && top.Type != "object" {
		return bad("its parameters are of type " + top.Type)
	}
	if len(top.Properties) == 0 || string(top.Properties) == "null" {
		return s, nil
	}
	dec := json.NewDecoder(bytes.NewReader(top.Properties))
	if tok, err := dec.Token(); err != nil || tok != json.Delim('{') {
		return bad("its properties are not an object")
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return bad("its properties are not readable")
		}
		var prop struct {
			Type json.RawMessage `json:"type"`
		}
		if err := dec.Decode(&prop); err != nil {
			return bad("a property is not an object")
		}
		name, _ := key.(string)
		if slices.ContainsFunc(s.args, func(a argument) bool { return a.name == name }) {
			return bad("the property " + name + " is listed twice")
		}
		s.args = append(s.args, argument{
			name:     name,
			text:     string(prop.Type) == `"string"`,
			required: slices.Contains(top.Required, name),
		})
	}
	return s, nil
}

// render describes a tool in one line for prompts with several tools: name(arg, optional?).
func (s schema) render() string {
	var b strings.Builder
	b.WriteString(s.name + "(")
	for i, a := range s.args {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(a.name)
		if !a.required {
			b.WriteString("?")
		}
	}
	b.WriteString(")")
	return b.String()
}
