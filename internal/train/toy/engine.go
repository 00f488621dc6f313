package toy

import (
	"context"
	"encoding/gob"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"agentrl/internal/engine"
	"agentrl/internal/policy"
	"agentrl/internal/rl"
	"agentrl/internal/trajectory"
)

// rows is how many kinds of preceding tokens the model tells apart.
const rows = 16

// Engine learns the logits of the next token after each kind of token, with plain Adam.
type Engine struct {
	vocab int
	stop  int32
	w     weights
	grad  []float64

	mu        sync.Mutex
	versions  map[engine.Version][]float64
	reference []float64

	// SaveError, if set, fails Save.
	SaveError func() error
	// PerToken slows generation, as a larger model would; 0 is off.
	PerToken time.Duration
}

// weights are what a checkpoint holds.
type weights struct {
	Logits, M, V []float64
	Steps        int
	Kept         map[string]int64
	Published    map[int64][]float64
	Reference    []float64
}

// New starts with equal logits. stop ends a generation.
func New(vocab int, stop int32) *Engine {
	n := rows * vocab
	return &Engine{vocab: vocab, stop: stop, grad: make([]float64, n), versions: map[engine.Version][]float64{},
		w: weights{Logits: make([]float64, n), M: make([]float64, n), V: make([]float64, n)}}
}

// Capabilities describes the model.
func (e *Engine) Capabilities() engine.Capabilities {
	return engine.Capabilities{Losses: []engine.LossKind{engine.CrossEntropy, engine.PPO}, KLReference: true, Versions: 16,
		ConcurrentSampling: true, MaxContext: 1 << 16, VocabSize: e.vocab, Parameters: int64(len(e.w.Logits)), Kernel: "toy"}
}

func logProbs(logits []float64, temperature float64) []float64 {
	out := make([]float64, len(logits))
	m := slices.Max(logits) / temperature
	var z float64
	for i, l := range logits {
		out[i] = l/temperature - m
		z += math.Exp(out[i])
	}
	for i := range out {
		out[i] -= math.Log(z)
	}
	return out
}

func (e *Engine) row(w []float64, prev int32) []float64 {
	r := int(prev) % rows
	return w[r*e.vocab : (r+1)*e.vocab]
}

// Forward returns the log-probs of weighted targets.
func (e *Engine) Forward(ctx context.Context, batch []engine.Datum, temperature float64) ([][]float32, error) {
	return e.forward(e.w.Logits, batch, temperature), ctx.Err()
}

func (e *Engine) forward(w []float64, batch []engine.Datum, temperature float64) [][]float32 {
	out := make([][]float32, len(batch))
	for i, d := range batch {
		out[i] = make([]float32, len(d.Tokens))
		for j := 1; j < len(d.Tokens); j++ {
			if d.Weights[j] != 0 {
				out[i][j] = float32(logProbs(e.row(w, d.Tokens[j-1]), temperature)[d.Tokens[j]])
			}
		}
	}
	return out
}

// ForwardBackward adds the gradient of the loss, token-mean only.
func (e *Engine) ForwardBackward(ctx context.Context, batch []engine.Datum, loss engine.Loss) (engine.LossOutput, error) {
	out := engine.LossOutput{Logprobs: e.forward(e.w.Logits, batch, loss.Temperature)}
	var total, clipped float64
	for _, d := range batch {
		for j := 1; j < len(d.Weights); j++ {
			total += float64(d.Weights[j])
		}
	}
	for i, d := range batch {
		for j := 1; j < len(d.Tokens); j++ {
			if d.Weights[j] == 0 {
				continue
			}
			out.Tokens++
			lp := float64(out.Logprobs[i][j])
			var dlp float64 // derivative of the loss by the log-prob
			if loss.Kind == engine.CrossEntropy {
				out.Loss -= lp * float64(d.Weights[j]) / total
				dlp = -float64(d.Weights[j])
			} else {
				clip := rl.Clip{Low: loss.ClipLow, High: loss.ClipHigh, Dual: loss.ClipDual}
				l, cut := rl.TokenLoss(float64(d.Advantages[j]), lp, float64(d.OldLogprobs[j]), clip)
				out.Loss += l / total
				ratio := math.Exp(lp - float64(d.OldLogprobs[j]))
				out.RatioMean += ratio / total
				out.RatioMax = math.Max(out.RatioMax, ratio)
				if cut {
					clipped++
				} else {
					dlp = -float64(d.Advantages[j]) * ratio
				}
				if d.RefLogprobs != nil && loss.KLCoef > 0 {
					diff := float64(d.RefLogprobs[j]) - lp
					out.KL += rl.K3(lp, float64(d.RefLogprobs[j])) / total
					dlp += loss.KLCoef * (1 - math.Exp(diff))
				}
			}
			p := logProbs(e.row(e.w.Logits, d.Tokens[j-1]), loss.Temperature)
			g := e.row(e.grad, d.Tokens[j-1])
			for k := range p {
				onehot := 0.0
				if k == int(d.Tokens[j]) {
					onehot = 1
				}
				g[k] += dlp * (onehot - math.Exp(p[k])) / loss.Temperature / total
			}
		}
	}
	if out.Tokens > 0 {
		out.ClipFraction = clipped / float64(out.Tokens)
	}
	return out, ctx.Err()
}

// OptimStep is one Adam step.
func (e *Engine) OptimStep(ctx context.Context, a engine.AdamParams) (engine.StepStats, error) {
	e.w.Steps++
	var norm float64
	c1, c2 := 1-math.Pow(0.9, float64(e.w.Steps)), 1-math.Pow(0.95, float64(e.w.Steps))
	for i, g := range e.grad {
		norm += g * g
		e.w.M[i] = 0.9*e.w.M[i] + 0.1*g
		e.w.V[i] = 0.95*e.w.V[i] + 0.05*g*g
		e.w.Logits[i] -= a.LearningRate * (e.w.M[i] / c1) / (math.Sqrt(e.w.V[i]/c2) + 1e-8)
		e.grad[i] = 0
	}
	return engine.StepStats{GradNorm: math.Sqrt(norm)}, ctx.Err()
}

// Publish copies the logits.
func (e *Engine) Publish(ctx context.Context, v engine.Version) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.versions) >= 16 {
		return "", fmt.Errorf("too many versions")
	}
	e.versions[v] = slices.Clone(e.w.Logits)
	return fmt.Sprint("v", v), ctx.Err()
}

// Sampler returns the policy of a version.
func (e *Engine) Sampler(v engine.Version) (policy.Policy, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w, ok := e.versions[v]
	if !ok {
		return nil, fmt.Errorf("version %d is not published", v)
	}
	return &sampler{e: e, w: w, v: v}, nil
}

// Release drops a version.
func (e *Engine) Release(v engine.Version) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.versions[v]; !ok {
		return fmt.Errorf("version %d is not published", v)
	}
	delete(e.versions, v)
	return nil
}

// SetReference freezes the present logits.
func (e *Engine) SetReference(context.Context) error {
	e.reference = slices.Clone(e.w.Logits)
	return nil
}

// ForwardReference is Forward with the frozen logits.
func (e *Engine) ForwardReference(ctx context.Context, batch []engine.Datum, temperature float64) ([][]float32, error) {
	if e.reference == nil {
		return nil, fmt.Errorf("no reference was set")
	}
	return e.forward(e.reference, batch, temperature), ctx.Err()
}

const fileName = "toy.gob"

// Save writes everything.
func (e *Engine) Save(ctx context.Context, dir string, keep map[string]engine.Version) error {
	if e.SaveError != nil {
		if err := e.SaveError(); err != nil {
			return err
		}
	}
	e.w.Kept, e.w.Published, e.w.Reference = map[string]int64{}, map[int64][]float64{}, e.reference
	for name, v := range keep {
		e.w.Kept[name], e.w.Published[int64(v)] = int64(v), e.versions[v]
	}
	f, err := os.Create(filepath.Join(dir, fileName))
	if err != nil {
		return err
	}
	if err := gob.NewEncoder(f).Encode(&e.w); err != nil {
		return err
	}
	return f.Close()
}

// Load restores everything.
func (e *Engine) Load(ctx context.Context, dir string) (map[string]engine.Version, error) {
	f, err := os.Open(filepath.Join(dir, fileName))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	e.w = weights{}
	if err := gob.NewDecoder(f).Decode(&e.w); err != nil {
		return nil, err
	}
	e.reference = e.w.Reference
	keep := map[string]engine.Version{}
	e.mu.Lock()
	defer e.mu.Unlock()
	for name, v := range e.w.Kept {
		keep[name] = engine.Version(v)
		e.versions[engine.Version(v)] = e.w.Published[v]
	}
	return keep, nil
}

// Close does nothing.
func (e *Engine) Close() error { return nil }

type sampler struct {
	e *Engine
	w []float64
	v engine.Version
}

func (s *sampler) ID() string     { return "toy" }
func (s *sampler) Version() int64 { return int64(s.v) }

// Generate draws from the seed alone, so the same prompt, weights and seed always give the same tokens.
func (s *sampler) Generate(ctx context.Context, p policy.Prompt, opt policy.Sampling) (policy.Completion, error) {
	out := policy.Completion{Version: int64(s.v), Digest: fmt.Sprint("v", s.v), EngineID: "toy", Finish: trajectory.FinishLength}
	prev := p.IDs[len(p.IDs)-1]
	for i := range opt.MaxNewTokens {
		if s.e.PerToken > 0 {
			timer := time.NewTimer(s.e.PerToken)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return out, ctx.Err()
			}
		}
		lp := logProbs(s.e.row(s.w, prev), opt.Temperature)
		u := policy.Uniform(policy.Hash(opt.Seed, uint64(i)))
		id := int32(len(lp) - 1)
		for k, l := range lp {
			if u -= math.Exp(l); u < 0 {
				id = int32(k)
				break
			}
		}
		out.IDs, out.Logprobs = append(out.IDs, id), append(out.Logprobs, float32(lp[id]))
		if prev = id; id == s.e.stop {
			out.Finish = trajectory.FinishStop
			break
		}
	}
	return out, ctx.Err()
}
