package train

import (
	"time"

	"agentrl/internal/metric"
)

// points collects the values that one step logs.
type points struct {
	step    int64
	at      time.Time
	tokens  int64
	samples int64
	list    []metric.Point
}

func (p *points) add(name string, value float64) {
	p.list = append(p.list, metric.Point{Metric: name, Step: p.step, Time: p.at, Tokens: p.tokens, Samples: p.samples, Value: value})
}

// of adds the value of one task, or of all when task is empty.
func (p *points) of(name, task string, value float64) {
	if task != "" {
		name += "/" + task
	}
	p.add(name, value)
}
