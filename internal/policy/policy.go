// Package policy is who writes the next message: versions of the trained model, stale copies, external models, and
// the pool that draws among them.
package policy

import (
	"context"
	"time"

	"agentrl/internal/trajectory"
)

// Sampling is how tokens are drawn.
type Sampling = trajectory.Sampling

// Constraint restricts decoding to a language. Begin is called once per generation.
type Constraint interface {
	Begin() ConstraintState
}

// ConstraintState walks along one generation. Not safe for concurrent use.
type ConstraintState interface {
	// Allow sets mask[id] for every token that may come next; mask arrives all false, its length is the vocabulary.
	Allow(mask []bool)
	// Accept moves past a drawn token.
	Accept(id int32)
}

// Prompt is what a policy continues. CacheKey pins the KV cache of a trajectory between its turns; an empty key caches
// nothing.
type Prompt struct {
	IDs        []int32
	CacheKey   string
	Constraint Constraint // nil: free
	Stops      []int32    // tokens that end the generation; empty: the end token of the engine's tokenizer
}

// Completion is what a policy wrote. Logprobs[i] is log-softmax at the sampling temperature, before truncation, of
// IDs[i]; the stop token is part of IDs. KeptMass is empty unless top-p, top-k, min-p or a constraint truncated.
type Completion struct {
	IDs          []int32
	Logprobs     []float32
	KeptMass     []float32
	Finish       trajectory.Finish
	Version      int64
	Digest       string
	EngineID     string
	CachedTokens int
	FirstTokenAt time.Time
}

// Policy writes the next message token by token. Safe for concurrent use.
//
// Generate returns ctx.Err() when cancelled; any other error is an infrastructure failure, never the agent's.
type Policy interface {
	ID() string
	Version() int64 // optimizer step of the weights in use; constant for external models
	Generate(ctx context.Context, p Prompt, s Sampling) (Completion, error)
}

// Forgetter is implemented by policies that keep a KV cache between turns. Forget frees what is kept under a key; call
// it when the episode has ended. Unknown keys are ignored.
type Forgetter interface {
	Forget(cacheKey string)
}
