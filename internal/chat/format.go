// Package chat turns messages into token ids and back, append-only: the ids of a conversation are the ids of its
// beginning followed by those of every later message, so a sampled token is never encoded again.
package chat

import (
	"agentrl/internal/errs"
	"agentrl/internal/tokenizer"
	"agentrl/internal/trajectory"
)

// Format is a chat template with its tool-call syntax. It is immutable and safe for concurrent use.
//
// The sequence of an episode is Open, then for every turn Begin, the sampled ids up to and including a stop token, and
// Reply. Text in messages never becomes a special token.
type Format interface {
	// Name is the name under which New finds the format.
	Name() string
	// With returns the format bound to tools: they are what Assistant and Parse know. The names of tools must differ
	// and their parameters must be JSON schemas of type object.
	With(tools []trajectory.Tool) (Format, error)
	// Tools returns what With was given.
	Tools() []trajectory.Tool
	// Open encodes the messages before the first turn. Assistant messages among them are examples.
	Open(msgs []trajectory.Message) []int32
	// Begin is the generation prompt, which opens an assistant message.
	Begin() []int32
	// Assistant encodes an assistant message as a policy would have sampled it: what follows Begin, up to and including
	// the stop token.
	Assistant(msg trajectory.Message) []int32
	// Reply encodes messages of the environment after a turn.
	Reply(msgs []trajectory.Message) []int32
	// Stops lists the tokens that end a generation.
	Stops() []int32
	// Parse reads sampled ids back. With an error of type *ParseError the message still holds the text as content, and
	// no tool calls.
	Parse(ids []int32) (trajectory.Message, error)
}

// ParseError says why sampled ids are not a well-formed message. It is the policy's doing, never an infrastructure
// failure.
type ParseError struct{ Reason string }

func (e *ParseError) Error() string { return e.Reason }

// New returns the format of that name over a tokenizer, bound to no tools. The only name is "compact".
func New(name string, tok *tokenizer.Tokenizer) (Format, error) {
	if name != CompactName {
		return nil, errs.Field("chat_format", "unknown format %q; allowed is %s", name, CompactName)
	}
	return NewCompact(tok)
}
