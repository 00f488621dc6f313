package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"agentrl/internal/trajectory"
)

// Assistant encodes content and tool calls. A call that is not of a bound tool, or whose arguments are no JSON object
// of the schema, is written as raw text after its name; it then does not parse back as that call.
func (c *Compact) Assistant(msg trajectory.Message) []int32 {
	ids := c.tok.Encode(msg.Content)
	for _, call := range msg.ToolCalls {
		ids = c.appendCall(ids, call)
	}
	return append(ids, c.end)
}

func (c *Compact) appendCall(ids []int32, call trajectory.ToolCall) []int32 {
	ids = append(ids, c.call)
	i, known := c.byName[call.Name]
	named := len(c.tools) != 1
	if named || !known {
		ids = c.tok.AppendEncode(ids, call.Name)
	}
	var values []string
	if known {
		if v, err := positional(c.schemas[i], call.Arguments); err == nil {
			values = v
		} else {
			known = false
		}
	}
	if !known {
		values = []string{call.Arguments}
	}
	for j, v := range values {
		if named || j > 0 {
			ids = append(ids, c.arg)
		}
		ids = c.tok.AppendEncode(ids, v)
	}
	return ids
}

// positional turns a JSON object into the values in schema order. Left-out optional arguments at the end are dropped,
// those in the middle become empty.
func positional(s schema, arguments string) ([]string, error) {
	var obj map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &obj); err != nil {
		return nil, err
	}
	values, used, last := make([]string, len(s.args)), 0, 0
	for i, a := range s.args {
		raw, ok := obj[a.name]
		if !ok {
			if a.required {
				return nil, fmt.Errorf("argument %s is missing", a.name)
			}
			continue
		}
		used++
		last = i + 1
		if a.text {
			if err := json.Unmarshal(raw, &values[i]); err != nil {
				return nil, err
			}
			continue
		}
		var b bytes.Buffer
		if err := json.Compact(&b, raw); err != nil {
			return nil, err
		}
		values[i] = b.String()
	}
	if used != len(obj) {
		return nil, fmt.Errorf("an argument is not in the schema")
	}
	return values[:last], nil
}

// Parse reads sampled ids. Everything before the first <|call|> is content; ids after a stop token are ignored.
func (c *Compact) Parse(ids []int32) (trajectory.Message, error) {
	for i, id := range ids {
		if id == c.end {
			ids = ids[:i]
			break
		}
	}
	msg := trajectory.Message{Role: trajectory.Assistant}
	parts := splitIDs(ids, c.call)
	calls := make([]trajectory.ToolCall, 0, len(parts)-1)
	for n, part := range parts {
		if n == 0 {
			if s := c.stray(part); s != "" {
				return c.broken(ids, "the token %s may not appear in the text of a message", s)
			}
			msg.Content = clean(c.tok.DecodeText(part))
			continue
		}
		call, err := c.parseCall(part)
		if err != nil {
			return c.broken(ids, "%s", err.Error())
		}
		call.ID = fmt.Sprintf("call_%d", n)
		calls = append(calls, call)
	}
	if len(calls) > 0 {
		msg.ToolCalls = calls
	}
	return msg, nil
}

func (c *Compact) parseCall(part []int32) (trajectory.ToolCall, error) {
	fields := splitIDs(part, c.arg)
	for _, f := range fields {
		if s := c.stray(f); s != "" {
			return trajectory.ToolCall{}, fmt.Errorf("the token %s may not appear in a tool call", s)
		}
	}
	if len(c.tools) == 0 {
		return trajectory.ToolCall{}, fmt.Errorf("there is no tool to call")
	}
	i := 0
	if len(c.tools) > 1 {
		name := c.tok.DecodeText(fields[0])
		var ok bool
		if i, ok = c.byName[name]; !ok {
			return trajectory.ToolCall{}, fmt.Errorf("there is no tool %q; the tools are %s", clean(name), strings.Join(c.names(), ", "))
		}
		fields = fields[1:]
	}
	values := make([]string, len(fields))
	for j, f := range fields {
		values[j] = clean(c.tok.DecodeText(f))
	}
	if len(c.tools) == 1 && len(values) == 1 && values[0] == "" {
		values = nil // without a name before it an empty argument cannot be told from none
	}
	s := c.schemas[i]
	if len(values) > len(s.args) {
		return trajectory.ToolCall{}, fmt.Errorf("tool %s takes at most %d arguments, got %d", s.name, len(s.args), len(values))
	}
	obj := bytes.NewBufferString("{")
	for j, a := range s.args {
		if j >= len(values) {
			if a.required {
				return trajectory.ToolCall{}, fmt.Errorf("tool %s: argument %s is missing", s.name, a.name)
			}
			continue
		}
		text := values[j]
		if text == "" && !a.required {
			continue
		}
		var value []byte
		if a.text {
			value = quote(text)
		} else if value = []byte(text); !json.Valid(value) {
			return trajectory.ToolCall{}, fmt.Errorf("tool %s: argument %s is not JSON", s.name, a.name)
		}
		if obj.Len() > 1 {
			obj.WriteByte(',')
		}
		obj.Write(quote(a.name))
		obj.WriteByte(':')
		obj.Write(value)
	}
	obj.WriteByte('}')
	return trajectory.ToolCall{Name: s.name, Arguments: obj.String()}, nil
}

// broken returns the whole text as content with a ParseError. Special tokens show as their names, so that a person
// sees what was written.
func (c *Compact) broken(ids []int32, format string, args ...any) (trajectory.Message, error) {
	return trajectory.Message{Role: trajectory.Assistant, Content: clean(c.tok.Decode(ids))}, &ParseError{fmt.Sprintf(format, args...)}
}

// stray returns the name of a special token among ids, or nothing.
func (c *Compact) stray(ids []int32) string {
	for _, id := range ids {
		if c.tok.IsSpecial(id) {
			return c.tok.Token(id)
		}
	}
	return ""
}

func (c *Compact) names() []string {
	names := make([]string, len(c.schemas))
	for i, s := range c.schemas {
		names[i] = s.name
	}
	return names
}

// describe lists several tools, one a line.
func (c *Compact) describe() string {
	lines := make([]string, len(c.schemas))
	for i, s := range c.schemas {
		lines[i] = s.render()
		if d := strings.Join(strings.Fields(c.tools[i].Description), " "); d != "" {
			lines[i] += ": " + d
		}
	}
	return strings.Join(lines, "\n")
}

// clean replaces broken UTF-8, which a policy may write but messages may not hold.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// quote writes a JSON string, leaving <, > and & readable.
func quote(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // writing a string to memory cannot fail
	return bytes.TrimRight(b.Bytes(), "\n")
}

func splitIDs(ids []int32, sep int32) [][]int32 {
	var parts [][]int32
	start := 0
	for i, id := range ids {
		if id == sep {
			parts = append(parts, ids[start:i])
			start = i + 1
		}
	}
	return append(parts, ids[start:])
}
