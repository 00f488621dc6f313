package nn

import "context"

// Packed is an immutable weight set of one version, laid out for the kernels; safe for concurrent use.
type Packed struct{ cfg Config }

// Pack lays out the model's weights as they are now.
func (m *Model) Pack() *Packed { return &Packed{cfg: m.cfg} }

// Config returns the architecture.
func (p *Packed) Config() Config { return p.cfg }

// Digest equals the digest of the model it was packed from.
func (p *Packed) Digest() string { return "" }

// Bytes is the memory the weight set holds.
func (p *Packed) Bytes() int64 { return 0 }

// TrainerOptions sets the width and the memory of a Trainer.
type TrainerOptions struct {
	Threads          int // 0: GOMAXPROCS
	MicroBatchTokens int // 0: 4096
}

// Trainer computes losses and gradients of one model and steps it. Not safe for concurrent use.
type Trainer struct{ model *Model }

// NewTrainer prepares gradients and moments for model, which the trainer then changes in place.
func NewTrainer(model *Model, o TrainerOptions) (*Trainer, error) { return &Trainer{model: model}, nil }

// Model is the model being trained.
func (t *Trainer) Model() *Model { return t.model }

// Forward returns the log-probs of the target tokens, per datum [n], 0 where the weight is 0. Nil Weights mean all.
func (t *Trainer) Forward(ctx context.Context, batch []Datum, temperature float64) ([][]float32, error) {
	return nil, nil
}

// ForwardBackward adds the gradient of the loss to the accumulated gradient.
func (t *Trainer) ForwardBackward(ctx context.Context, batch []Datum, loss Loss) (LossOutput, error) {
	return LossOutput{}, nil
}

// OptimStep clips, applies AdamW and clears the gradient.
func (t *Trainer) OptimStep(p AdamParams) (StepStats, error) { return StepStats{}, nil }

// OptimizerState returns the number of steps done and the two moments under the parameter names; the trainer's memory.
func (t *Trainer) OptimizerState() (step int64, m, v []Param) { return 0, nil, nil }

// SetOptimizerState restores what OptimizerState returned, by name; shapes must fit.
func (t *Trainer) SetOptimizerState(step int64, m, v []Param) error { return nil }

// Close stops the trainer's workers; idempotent.
func (t *Trainer) Close() {}

// DecoderOptions sets the width of a Decoder.
type DecoderOptions struct {
	Threads int // 0: GOMAXPROCS
}

// Decoder samples from one weight set. Not safe for concurrent use.
type Decoder struct{ w *Packed }

// NewDecoder prepares workspaces for w.
func NewDecoder(w *Packed, o DecoderOptions) *Decoder { return &Decoder{w: w} }

// Cache holds the keys and values of one sequence under one weight set.
type Cache struct{ n int }

// NewCache makes an empty cache with room for capacity tokens; it grows up to the context length.
func (d *Decoder) NewCache(capacity int) *Cache { return &Cache{} }

// Len is the number of tokens in the cache.
func (c *Cache) Len() int { return c.n }

// Truncate forgets all tokens from position n on.
func (c *Cache) Truncate(n int) {}

// Clone copies a cache, so that several continuations share a prefix.
func (c *Cache) Clone() *Cache { return c }

// Bytes is the memory the cache holds.
func (c *Cache) Bytes() int64 { return 0 }

// Prefill appends ids to the cache and returns the logits [V] after the last one; valid until the next call.
func (d *Decoder) Prefill(c *Cache, ids []int32) ([]float32, error) { return nil, nil }

// Step appends one token to each cache and returns the logits [b, V]; valid until the next call.
func (d *Decoder) Step(caches []*Cache, ids []int32) ([]float32, error) { return nil, nil }

// Extend appends ids[i] to caches[i], prompts and single tokens mixed, and returns the logits [b, V] after the last
// token of each; valid until the next call. No cache may appear twice.
func (d *Decoder) Extend(caches []*Cache, ids [][]int32) ([]float32, error) { return nil, nil }

// Close stops the decoder's workers; idempotent.
func (d *Decoder) Close() {}
