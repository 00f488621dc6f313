package nn

// Datum is one training sequence. All slices have the length n of Tokens; position i says something about predicting
// Tokens[i] from Tokens[:i], so index 0 is never trained. Weight 0 is mask 0 and costs no head computation.
type Datum struct {
	Tokens      []int32
	Weights     []float32 // [n] loss weight of each target token
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

// The reductions of method.md 7.1. With weights other than 0 and 1 the means are weighted means.
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
	// Denominator replaces what the batch would give (token-mean: the sum of weights; seq-mean: the number of
	// sequences with a trained token) when one update is spread over several calls. 0 means: from this batch.
	Denominator float64
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
	WeightDecay  float64 // decoupled; matrices only, never norm gains
	GradClip     float64 // global norm; 0: off
}

// StepStats reports an optimizer step. Skipped means the gradient was not finite and the weights did not change.
type StepStats struct {
	GradNorm float64
	Skipped  bool
}
