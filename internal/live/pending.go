package live

import (
	"encoding/json"

	"agentrl/internal/errs"
)

// The bounds of what a publisher holds back while Redis is slow or away.
const (
	topicBytes = 4 << 20
	totalBytes = 32 << 20
)

// op is one message not yet numbered. A delta's data lacks the brackets so that the next can be joined on.
type op struct {
	kind  Kind
	data  []byte
	items int64
}

// pending is what waits for the next flush of one topic.
type pending struct {
	ops   []op
	bytes int
}

// add joins o to what waits: neighbouring deltas become one, a state replaces the state before it.
func (p *pending) add(o op) {
	p.bytes += len(o.data)
	if n := len(p.ops); n > 0 && p.ops[n-1].kind == o.kind {
		last := &p.ops[n-1]
		switch o.kind {
		case Delta:
			last.data = append(append(last.data, ','), o.data...)
			last.items += o.items
			return
		case State, Resync, End:
			p.bytes -= len(last.data)
			*last = o
			return
		}
	}
	p.ops = append(p.ops, o)
}

// overflow gives up what waits for one resync and returns how many items were lost. The end of a topic is kept.
func (p *pending) overflow() (lost int64) {
	ended := false
	for _, o := range p.ops {
		lost += o.items
		ended = ended || o.kind == End
	}
	p.ops = append(p.ops[:0], op{kind: Resync})
	if ended {
		p.ops = append(p.ops, op{kind: End})
	}
	p.bytes = 0
	return lost
}

// encode marshals the items of one Publish.
func encode(topic string, kind Kind, items []any) (op, error) {
	o := op{kind: kind, items: int64(len(items))}
	switch kind {
	case Delta:
		if len(items) == 0 {
			return op{}, errs.New(errs.Invalid, "a delta on %s needs at least one item", topic)
		}
	case State:
		if len(items) != 1 {
			return op{}, errs.New(errs.Invalid, "a state on %s needs exactly one item, not %d", topic, len(items))
		}
	case Resync, End, Error:
		if len(items) > 1 {
			return op{}, errs.New(errs.Invalid, "%s on %s takes at most one item, not %d", kind, topic, len(items))
		}
	default:
		return op{}, errs.New(errs.Invalid, "%q is not a kind of live message; allowed are delta, state, resync, end and error", kind)
	}
	for i, it := range items {
		b, err := json.Marshal(it)
		if err != nil {
			return op{}, errs.Wrap(errs.Invalid, err, "item %d on %s cannot be written as JSON", i, topic)
		}
		if i > 0 {
			o.data = append(o.data, ',')
		}
		o.data = append(o.data, b...)
	}
	return o, nil
}
