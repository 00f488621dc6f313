// Package native is the engine inside this program: a small transformer that trains and samples on the CPU
// (compute.md).
package native

import (
	"log/slog"
	"time"

	"agentrl/internal/tokenizer"
)

// Options configure an engine. Zero values choose defaults where the comment gives one.
type Options struct {
	Base             string               // pico, nano, micro, mini, or a directory of safetensors with config.json
	Tokenizer        *tokenizer.Tokenizer // needed for presets; nil with a directory reads its tokenizer.json
	Seed             uint64               // initial weights of presets
	Threads          int                  // 0: number of processors
	MicroBatchTokens int                  // 0: 4096
	MemoryLimit      int64                // bytes; 0: half of what the machine or its container has
	MaxContext       int                  // tokens per sequence; 0: the preset's context
	MaxBatch         int                  // live sequences in one decoding step; 0: 64
	Versions         int                  // published versions resident at once; 0: 3
	CacheBytes       int64                // KV cache kept between turns; 0: what the limit leaves, up to 2*MaxBatch full sequences
	QueueMax         int                  // requests queued or live before new ones are refused; 0: 4096
	Stops            []int32              // tokens that end a generation by default; empty: the tokenizer's <|end|>
	EngineID         string               // stored with every turn; empty: "native"
	Logger           *slog.Logger         // nil: nothing is logged
	Now              func() time.Time     // nil: time.Now
}
