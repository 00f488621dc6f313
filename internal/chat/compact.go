package chat

import (
	"agentrl/internal/errs"
	"agentrl/internal/tokenizer"
	"agentrl/internal/trajectory"
)

// CompactName is the name of the compact format.
const CompactName = "compact"

// The special tokens of the compact format.
const (
	TokenPad       = "<|pad|>"
	TokenBegin     = "<|begin|>"
	TokenSystem    = "<|system|>"
	TokenUser      = "<|user|>"
	TokenAssistant = "<|assistant|>"
	TokenTool      = "<|tool|>"
	TokenCall      = "<|call|>"
	TokenArg       = "<|arg|>"
	TokenEnd       = "<|end|>"
)

// SpecialTokens lists the special tokens that a tokenizer for our formats must have, in the order of their ids.
func SpecialTokens() []string {
	return []string{TokenPad, TokenBegin, TokenSystem, TokenUser, TokenAssistant, TokenTool, TokenCall, TokenArg, TokenEnd}
}

// Compact is the format of tiny models, made to spend as few tokens as possible.
//
// A conversation is <|begin|> followed by <|role|>text of each message. Only assistant messages end with <|end|>; the
// next role mark ends the others. A tool call is <|call|>name<|arg|>first<|arg|>second with the arguments in the order
// of the schema's properties, strings as they are and other types as JSON; trailing optional arguments may be left
// out. With exactly one tool its name is left out as well: <|call|>go to desk 1<|end|>. Tools are described in the
// first message only when there are several.
type Compact struct {
	tok                                                       *tokenizer.Tokenizer
	begin, system, user, assistant, tool, call, arg, end, pad int32
	tools                                                     []trajectory.Tool
	schemas                                                   []schema
	byName                                                    map[string]int
}

// NewCompact checks that the tokenizer has the special tokens.
func NewCompact(tok *tokenizer.Tokenizer) (*Compact, error) {
	c := &Compact{tok: tok}
	for name, id := range map[string]*int32{
		TokenPad: &c.pad, TokenBegin: &c.begin, TokenSystem: &c.system, TokenUser: &c.user, TokenAssistant: &c.assistant,
		TokenTool: &c.tool, TokenCall: &c.call, TokenArg: &c.arg, TokenEnd: &c.end,
	} {
		v, ok := tok.Special(name)
		if !ok {
			return nil, errs.New(errs.Invalid, "the tokenizer lacks the special token %s; the compact format needs %v", name, SpecialTokens())
		}
		*id = v
	}
	return c, nil
}

// Name returns "compact".
func (c *Compact) Name() string { return CompactName }

// Tools returns the bound tools.
func (c *Compact) Tools() []trajectory.Tool { return c.tools }

// Begin returns <|assistant|>.
func (c *Compact) Begin() []int32 { return []int32{c.assistant} }

// Stops returns <|end|>.
func (c *Compact) Stops() []int32 { return []int32{c.end} }

// With binds tools.
func (c *Compact) With(tools []trajectory.Tool) (Format, error) {
	d := *c
	d.tools, d.schemas, d.byName = tools, nil, map[string]int{}
	for i, t := range tools {
		s, err := parseSchema(t)
		if err != nil {
			return nil, err
		}
		if _, ok := d.byName[t.Name]; ok {
			return nil, errs.New(errs.Invalid, "two tools are called %q; names must differ", t.Name)
		}
		d.byName[t.Name] = i
		d.schemas = append(d.schemas, s)
	}
	return &d, nil
}

// Open encodes <|begin|> and the messages.
func (c *Compact) Open(msgs []trajectory.Message) []int32 {
	ids := []int32{c.begin}
	if len(c.tools) > 1 {
		ids = append(ids, c.system)
		ids = c.tok.AppendEncode(ids, c.describe())
	}
	return c.appendMessages(ids, msgs)
}

// Reply encodes the environment's messages.
func (c *Compact) Reply(msgs []trajectory.Message) []int32 { return c.appendMessages(nil, msgs) }

func (c *Compact) appendMessages(ids []int32, msgs []trajectory.Message) []int32 {
	for _, m := range msgs {
		switch m.Role {
		case trajectory.System:
			ids = append(ids, c.system)
		case trajectory.ToolRole:
			ids = append(ids, c.tool)
		case trajectory.Assistant:
			ids = append(ids, c.assistant)
			ids = append(ids, c.Assistant(m)...)
			continue
		default:
			ids = append(ids, c.user)
		}
		ids = c.tok.AppendEncode(ids, m.Content)
	}
	return ids
}
