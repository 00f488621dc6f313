// Package engine is what holds and updates weights.
package engine

import (
	"context"

	"agentrl/internal/policy"
)

// Version is the optimizer step whose weights are meant. Warm-start weights are version 0 of the RL phase.
type Version int64

// Capabilities says what an engine can do, so that a configuration it cannot serve is refused before it starts.
type Capabilities struct {
	Losses             []LossKind
	KLReference        bool
	Entropy            bool
	Versions           int // resident at once
	ConcurrentSampling bool
	MaxContext         int
	VocabSize          int
	Parameters         int64
	Kernel             string
}

// Datum is one training sequence. All slices have the length n of Tokens; position i says something about predicting
// Tokens[i] from Tokens[:i], so index 0 is never trained. Weight 0 is mask 0.
type Datum struct {
	Tokens      []int32
	Weights     []float32 // [n] loss weight of each target token, 0 or 1 for RL
	OldLogprobs []float32 // [n] behaviour log-probs; nil for cross-entropy
	RefLogprobs []float32 // [n] reference log-probs; nil without KL
	Advantages  []float32 // [n]; nil for cross-entropy
}

// LossKind names a loss.
type LossKind string

// The losses.
const (
	CrossEntropy LossKind = "cross_entropy"
	PPO          LossKind = "ppo"
)

// Reduction says what the summed loss is divided by, over the whole batch and never per micro-batch.
type Reduction string

// The reductions of method.md 7.1.
const (
	TokenMean Reduction = "token-mean"
	SeqMean   Reduction = "seq-mean"
)

// Loss describes method.md 7.1. ClipDual 0 switches the dual clip off, otherwise it must exceed 1.
type Loss struct {
	Kind        LossKind
	Reduction   Reduction
	Temperature float64 // logits are divided by it before log-softmax; 0 means 1
	ClipLow     float64
	ClipHigh    float64
	ClipDual    float64
	KLCoef      float64
	EntropyCoef float64
}

// LossOutput reports a ForwardBackward. Means are over tokens with non-zero weight.
type LossOutput struct {
	Loss         float64
	Tokens       int
	Logprobs     [][]float32 // per datum [n], of the target tokens before the update, 0 where weight is 0
	Entropy      float64
	KL           float64
	ClipFraction float64
	RatioMean    float64
	RatioMax     float64
	Correct      float64 // share of targets that were the arg max
}

// AdamParams are the fields of one AdamW step.
type AdamParams struct {
	LearningRate float64
	Beta1, Beta2 float64 // zero: 0.9, 0.95
	Eps          float64 // zero: 1e-8
	WeightDecay  float64
	GradClip     float64 // global norm; 0: off
}

// StepStats reports an optimizer step. Skipped means the gradient was not finite and the weights did not change.
type StepStats struct {
	GradNorm float64
	Skipped  bool
}

// Engine holds trainable weights. One Engine per attempt; calls are serialised by the trainer, except that policies
// returned by Sampler may generate at any time.
type Engine interface {
	Capabilities() Capabilities
	Forward(ctx context.Context, batch []Datum, temperature float64) ([][]float32, error)
	ForwardBackward(ctx context.Context, batch []Datum, loss Loss) (LossOutput, error)
	OptimStep(ctx context.Context, adam AdamParams) (StepStats, error)
	// Publish makes the current weights available for sampling under v and returns their digest.
	Publish(ctx context.Context, v Version) (digest string, err error)
	// Sampler writes with exactly version v, which must be published and not released.
	Sampler(v Version) (policy.Policy, error)
	Release(v Version) error
	// Save writes model, optimizer and every published version in keep below dir, which must exist and be empty.
	Save(ctx context.Context, dir string, keep map[string]Version) error
	// Load restores what Save wrote and publishes the kept versions again under their numbers.
	Load(ctx context.Context, dir string) (keep map[string]Version, err error)
	Close() error
}

// Referencer is implemented by engines with Capabilities.KLReference: they keep one frozen set of weights for the KL
// term. Save and Load carry it along.
type Referencer interface {
	// SetReference freezes the current weights as the reference.
	SetReference(ctx context.Context) error
	// ForwardReference is Forward with the reference weights; an error without SetReference.
	ForwardReference(ctx context.Context, batch []Datum, temperature float64) ([][]float32, error)
}
