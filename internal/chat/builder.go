package chat

import (
	"agentrl/internal/trajectory"
)

// Builder holds the append-only token sequence of one episode. What was appended never changes, so the sampled ids and
// their log-probs stay valid for training. Not safe for concurrent use.
type Builder struct {
	format Format
	ids    []int32
	begun  bool // the generation prompt of the next turn is already at the end
}

// NewBuilder starts an episode with its opening messages. f must be bound to the tools of the task.
func NewBuilder(f Format, open []trajectory.Message) *Builder {
	return &Builder{format: f, ids: f.Open(open)}
}

// Format returns the format.
func (b *Builder) Format() Format { return b.format }

// Tokens returns the sequence so far. The caller must not change it; later appends do not change its content.
func (b *Builder) Tokens() []int32 { return b.ids[:len(b.ids):len(b.ids)] }

// Len returns the length of the sequence.
func (b *Builder) Len() int { return len(b.ids) }

// Prompt appends the generation prompt, unless it is there already, and returns the sequence to be continued. Calling
// it again, as after a restarted turn, returns the same.
func (b *Builder) Prompt() []int32 {
	if !b.begun {
		b.ids = append(b.ids, b.format.Begin()...)
		b.begun = true
	}
	return b.Tokens()
}

// Sampled appends what a policy wrote after Prompt and returns its place [start, end). A generation that was cut is
// appended as it is; the environment's reply follows directly.
func (b *Builder) Sampled(ids []int32) (start, end int) {
	b.Prompt()
	start = len(b.ids)
	b.ids = append(b.ids, ids...)
	b.begun = false
	return start, len(b.ids)
}

// Assistant appends a message as a policy would have sampled it, for demonstrations, and returns its place.
func (b *Builder) Assistant(msg trajectory.Message) (start, end int) {
	return b.Sampled(b.format.Assistant(msg))
}

// Reply appends messages of the environment.
func (b *Builder) Reply(msgs []trajectory.Message) {
	b.ids = append(b.ids, b.format.Reply(msgs)...)
	b.begun = false
}
