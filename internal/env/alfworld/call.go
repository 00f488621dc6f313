package alfworld

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"agentrl/internal/trajectory"
)

// The tool and its argument (env-alfworld.md 3).
const (
	toolName = "take_action"
	toolKey  = "action"
)

func tools() []trajectory.Tool {
	return []trajectory.Tool{{
		Name:        toolName,
		Description: "Does one thing in the household and returns what you see then.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"action":{"type":"string",` +
			`"description":"what to do, worded exactly like one of the possible actions"}},"required":["action"],"additionalProperties":false}`),
	}}
}

// callFor writes the assistant message that submits a command.
func callFor(id, command string) trajectory.Message {
	b, _ := json.Marshal(map[string]string{toolKey: command}) // a map of strings always encodes
	return trajectory.Message{Role: trajectory.Assistant, ToolCalls: []trajectory.ToolCall{{ID: id, Name: toolName, Arguments: string(b)}}}
}

// submission reads the action of a call. warn says that it came under another key. Upstream takes the first value
// whatever its key and never looks at the tool's name (env-alfworld.md 7.2: first_value, any_tool_name).
func submission(c trajectory.ToolCall, compat bool) (action string, warn, ok bool) {
	if !compat && c.Name != toolName {
		return "", false, false
	}
	keys, values, err := pairs(c.Arguments)
	if err != nil || len(keys) == 0 {
		return "", false, false
	}
	i := 0
	if !compat {
		for j, k := range keys {
			if k == toolKey {
				return text(values[j])
			}
		}
		if len(keys) > 1 {
			return "", false, false
		}
	}
	action, _, ok = text(values[i])
	return action, ok && keys[i] != toolKey, ok
}

func text(v json.RawMessage) (string, bool, bool) {
	var s string
	if len(v) == 0 || v[0] != '"' || json.Unmarshal(v, &s) != nil {
		return "", false, false
	}
	return s, false, true
}

// pairs reads a JSON object in the order of its keys; of equal keys the last value counts, at the place of the first.
func pairs(s string) (keys []string, values []json.RawMessage, err error) {
	d := json.NewDecoder(strings.NewReader(s))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, errors.New("not a JSON object")
	}
	at := map[string]int{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		k, ok := t.(string)
		if !ok {
			return nil, nil, errors.New("a key is not a string")
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, nil, err
		}
		if i, ok := at[k]; ok {
			values[i] = bytes.TrimSpace(v)
			continue
		}
		at[k] = len(keys)
		keys, values = append(keys, k), append(values, bytes.TrimSpace(v))
	}
	if _, err := d.Token(); err != nil {
		return nil, nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, errors.New("there is text after the JSON object")
	}
	return keys, values, nil
}
