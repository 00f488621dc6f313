package native

import (
	"context"

	"agentrl/internal/engine"
	"agentrl/internal/errs"
	"agentrl/internal/nn"
)

// Forward returns the log-probs of the target tokens under the current weights.
func (e *Engine) Forward(ctx context.Context, batch []engine.Datum, temperature float64) ([][]float32, error) {
	e.train.Lock()
	defer e.train.Unlock()
	return e.trainer.Forward(ctx, data(batch), temperature)
}

// ForwardBackward adds the gradient of the loss to the accumulated gradient.
func (e *Engine) ForwardBackward(ctx context.Context, batch []engine.Datum, loss engine.Loss) (engine.LossOutput, error) {
	e.train.Lock()
	defer e.train.Unlock()
	out, err := e.trainer.ForwardBackward(ctx, data(batch), nn.Loss{
		Kind:        nn.LossKind(loss.Kind),
		Reduction:   nn.Reduction(loss.Reduction),
		Temperature: loss.Temperature,
		ClipLow:     loss.ClipLow,
		ClipHigh:    loss.ClipHigh,
		ClipDual:    loss.ClipDual,
		KLCoef:      loss.KLCoef,
		EntropyCoef: loss.EntropyCoef,
	})
	return engine.LossOutput(out), err
}

// OptimStep clips, applies AdamW and clears the gradient.
func (e *Engine) OptimStep(ctx context.Context, adam engine.AdamParams) (engine.StepStats, error) {
	e.train.Lock()
	defer e.train.Unlock()
	if err := ctx.Err(); err != nil {
		return engine.StepStats{}, err
	}
	st, err := e.trainer.OptimStep(nn.AdamParams(adam))
	return engine.StepStats(st), err
}

// SetReference freezes the current weights for the KL term.
func (e *Engine) SetReference(ctx context.Context) error {
	e.train.Lock()
	defer e.train.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	m := e.model.Clone()
	e.ref = &reference{m, m.Pack()}
	return nil
}

// ForwardReference is Forward with the frozen weights.
func (e *Engine) ForwardReference(ctx context.Context, batch []engine.Datum, temperature float64) ([][]float32, error) {
	e.train.Lock()
	defer e.train.Unlock()
	if e.ref == nil {
		return nil, errs.New(errs.Conflict, "no reference weights were set")
	}
	return e.trainer.ForwardWith(ctx, e.ref.weights, data(batch), temperature)
}

// reference is the frozen weight set of the KL term.
type reference struct {
	model   *nn.Model
	weights *nn.Packed
}

func data(batch []engine.Datum) []nn.Datum {
	out := make([]nn.Datum, len(batch))
	for i, d := range batch {
		out[i] = nn.Datum(d)
	}
	return out
}
