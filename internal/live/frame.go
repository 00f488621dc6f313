package live

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
)

// frameBytes is where a frame stops taking in more messages.
const frameBytes = 256 << 10

// Frame is one serialised Message that all receivers share; nobody changes it.
type Frame struct {
	Topic string
	Seq   int64
	Kind  Kind
	Bytes []byte // JSON of the Message

	once  sync.Once
	value any
}

// NewFrame serialises m.
func NewFrame(m Message) *Frame {
	return frameOf(m.Topic, m.Seq, m.Kind, string(m.Data))
}

// Shared builds a value from the frame once, for example a prepared websocket message, and returns it to everyone who
// asks. Safe for concurrent use.
func (f *Frame) Shared(build func(b []byte) any) any {
	f.once.Do(func() { f.value = build(f.Bytes) })
	return f.value
}

func frameOf(topic string, seq int64, kind Kind, data string) *Frame {
	name, _ := json.Marshal(topic)
	b := make([]byte, 0, len(name)+len(data)+64)
	b = append(append(b, `{"topic":`...), name...)
	b = append(append(b, `,"seq":`...), strconv.FormatInt(seq, 10)...)
	b = append(append(append(b, `,"kind":"`...), kind...), '"')
	if data != "" {
		b = append(append(b, `,"data":`...), data...)
	}
	return &Frame{Topic: topic, Seq: seq, Kind: kind, Bytes: append(b, '}')}
}

// prefix returns how many entries at the start of list make one frame: deltas are joined, of states the last counts,
// all else stands alone.
func prefix(list []entry) int {
	size := 0
	for i, e := range list {
		if i > 0 && (e.kind != list[0].kind || e.kind != Delta && e.kind != State) {
			return i
		}
		if e.kind == Delta {
			size += len(e.data)
			if i > 0 && size > frameBytes {
				return i
			}
		}
	}
	return len(list)
}

// join makes one frame of entries that prefix put together.
func join(topic string, list []entry) *Frame {
	last := list[len(list)-1]
	if last.kind != Delta || len(list) == 1 {
		return frameOf(topic, last.seq, last.kind, last.data)
	}
	var b strings.Builder
	b.WriteByte('[')
	for _, e := range list {
		inner := strings.TrimSuffix(strings.TrimPrefix(e.data, "["), "]")
		if inner == "" {
			continue
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(inner)
	}
	b.WriteByte(']')
	return frameOf(topic, last.seq, Delta, b.String())
}
