package nn

import (
	"context"

	"agentrl/internal/errs"
	"agentrl/internal/nn/kernel"
)

// TrainerOptions sets the width and the memory of a Trainer.
type TrainerOptions struct {
	Threads          int // 0: GOMAXPROCS
	MicroBatchTokens int // 0: 4096; sequences are packed up to this many tokens, a longer one goes alone
}

// Trainer computes losses and gradients of one model and steps it. Not safe for concurrent use. Close releases its
// goroutines.
type Trainer struct {
	model    *Model
	cfg      Config
	kn       kernel.Kernel
	opt      TrainerOptions
	pool     *pool
	w        *Packed   // the model's weights for x*W^T
	back     backPacks // the same for dY*W
	grad     []float32
	adam     adamState
	act      activations
	mb       microBatch
	ws       []*trainSpace
	tasks    taskSet
	headWork headSpace
}

// NewTrainer prepares gradients and moments for model, which the trainer then changes in place.
func NewTrainer(model *Model, o TrainerOptions) (*Trainer, error) {
	if o.MicroBatchTokens < 0 || o.Threads < 0 {
		return nil, errs.New(errs.Invalid, "threads %d and micro-batch tokens %d must not be negative", o.Threads, o.MicroBatchTokens)
	}
	if o.MicroBatchTokens == 0 {
		o.MicroBatchTokens = 4096
	}
	t := &Trainer{model: model, cfg: model.cfg, kn: model.kn, opt: o, pool: newPool(o.Threads)}
	t.w = newPacked(t.cfg, t.kn)
	t.back = newBackPacks(t.cfg)
	t.grad = make([]float32, model.lay.size)
	t.adam = newAdamState(model)
	for range t.pool.width {
		t.ws = append(t.ws, newTrainSpace(t.cfg))
	}
	t.bindTasks()
	return t, nil
}

// Model is the model being trained.
func (t *Trainer) Model() *Model { return t.model }

// Kernel names the arithmetic path, "avx2" or "generic".
func (t *Trainer) Kernel() string { return t.kn.Name() }

// Close stops the trainer's workers; idempotent.
func (t *Trainer) Close() { t.pool.close() }

// Gradients returns the accumulated gradient under the parameter names; the trainer's own memory.
func (t *Trainer) Gradients() []Param { return params(t.cfg, t.grad) }

// ZeroGrad forgets the accumulated gradient.
func (t *Trainer) ZeroGrad() { clear(t.grad) }

// Forward returns the log-probs of the target tokens under the current weights, per datum [n]: of every token but the
// first, or where Weights is given only where it is not 0, and 0 elsewhere. Logits are divided by temperature (0: 1).
func (t *Trainer) Forward(ctx context.Context, batch []Datum, temperature float64) ([][]float32, error) {
	t.w.load(t.model)
	return t.score(ctx, t.w, batch, temperature)
}

// ForwardWith is Forward under another weight set of the same architecture, such as a frozen reference.
func (t *Trainer) ForwardWith(ctx context.Context, w *Packed, batch []Datum, temperature float64) ([][]float32, error) {
	a, b := w.cfg, t.cfg
	a.Name, b.Name = "", ""
	if a != b {
		return nil, errs.New(errs.Invalid, "the weight set has another architecture")
	}
	return t.score(ctx, w, batch, temperature)
}

func (t *Trainer) score(ctx context.Context, w *Packed, batch []Datum, temperature float64) ([][]float32, error) {
	loss := Loss{Kind: CrossEntropy, Reduction: TokenMean, Temperature: temperature, Denominator: 1}
	if err := loss.validate(); err != nil {
		return nil, err
	}
	plain := make([]Datum, len(batch))
	for i, d := range batch {
		plain[i] = Datum{Tokens: d.Tokens, Weights: d.Weights}
		if d.Weights == nil {
			ones := make([]float32, len(d.Tokens))
			for j := 1; j < len(ones); j++ {
				ones[j] = 1
			}
			plain[i].Weights = ones
		}
	}
	if err := loss.checkBatch(plain, t.cfg); err != nil {
		return nil, err
	}
	out := newLogprobs(batch)
	for lo := 0; lo < len(plain); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		lo = t.pack(plain, lo)
		t.forward(w)
		t.head(w, loss, plain, nil, out, nil)
	}
	return out, nil
}

func newLogprobs(batch []Datum) [][]float32 {
	out := make([][]float32, len(batch))
	for i, d := range batch {
		out[i] = make([]float32, len(d.Tokens))
	}
	return out
}

// ForwardBackward adds the gradient of the loss to the accumulated gradient. The normaliser is that of the whole batch,
// so cutting it into micro-batches changes nothing but rounding. On error or cancellation the gradient is cleared.
func (t *Trainer) ForwardBackward(ctx context.Context, batch []Datum, loss Loss) (LossOutput, error) {
	if err := loss.validate(); err != nil {
		return LossOutput{}, err
	}
	if err := loss.checkBatch(batch, t.cfg); err != nil {
		return LossOutput{}, err
	}
	scales, err := loss.scales(batch)
	if err != nil {
		return LossOutput{}, err
	}
	t.w.load(t.model)
	t.back.load(t.model)
	out := LossOutput{Logprobs: newLogprobs(batch)}
	var sum tally
	for lo := 0; lo < len(batch); {
		if err := ctx.Err(); err != nil {
			t.ZeroGrad()
			return LossOutput{}, err
		}
		lo = t.pack(batch, lo)
		if len(t.mb.ids) == 0 {
			continue
		}
		t.forward(t.w)
		t.head(t.w, loss, batch, scales, out.Logprobs, &sum)
		t.backward()
	}
	sum.report(&out)
	return out, nil
}
