package native

import (
	"sync/atomic"

	"agentrl/internal/engine"
	"agentrl/internal/nn"
)

// version is one published, immutable set of weights. Generations that started with it keep it alive after its
// release.
type version struct {
	number   engine.Version
	weights  *nn.Packed
	model    *nn.Model // the same weights as tensors, for checkpoints
	digest   string
	released atomic.Bool
}
