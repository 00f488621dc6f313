// Package trajectory is the domain of one playing of one sample: messages, turns, tokens and how it ended.
package trajectory

import "encoding/json"

// Role says who wrote a message.
type Role string

// The roles of the chat-completion convention.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// ToolCall is one function call in an assistant message. Arguments is the JSON text as the policy wrote it, which
// may not be valid JSON.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Message is one entry of a conversation.
type Message struct {
	Role       Role       `json:"role"`
	Content    string     `json:"content,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"` // on tool messages: the call that is answered
}

// Tool describes a function that a policy may call. Parameters is a JSON schema of type object.
type Tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}
