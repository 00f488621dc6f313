package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"agentrl/internal/metric"
	"agentrl/internal/nn"
)

// benchVocab is the vocabulary of the tokenizer the engine trains (compute.md 2).
const benchVocab = 1024

func model(preset string, vocab int) (*nn.Model, error) {
	if vocab == 0 {
		vocab = benchVocab
	}
	cfg, err := nn.Preset(preset, vocab)
	if err != nil {
		return nil, err
	}
	return nn.NewModel(cfg, 1)
}

// TrainOptions describes a training measurement; zero values are the defaults in brackets.
type TrainOptions struct {
	Vocab, Length, Tokens, Threads int     // [1024, 256, 4096 a step, GOMAXPROCS]
	Trained                        float64 // share of tokens with a loss [0.25, as tool-using episodes have]
}

// Train measures whole steps: forward, loss, backward and AdamW.
func Train(ctx context.Context, preset string, o TrainOptions) ([]metric.Figure, error) {
	m, err := model(preset, o.Vocab)
	if err != nil {
		return nil, err
	}
	if o.Length == 0 {
		o.Length = 256
	}
	if o.Tokens == 0 {
		o.Tokens = 4096
	}
	if o.Trained == 0 {
		o.Trained = 0.25
	}
	tr, err := nn.NewTrainer(m, nn.TrainerOptions{Threads: o.Threads})
	if err != nil {
		return nil, err
	}
	defer tr.Close()
	cfg := m.Config()
	rng := rand.New(rand.NewPCG(2, 2))
	var batch []nn.Datum
	tokens := 0
	for tokens < o.Tokens {
		d := nn.Datum{Tokens: make([]int32, o.Length+1), Weights: make([]float32, o.Length+1)}
		for i := range d.Tokens {
			d.Tokens[i] = int32(rng.IntN(cfg.Vocab))
			if i > 0 && (rng.Float64() < o.Trained || i == o.Length) {
				d.Weights[i] = 1
			}
		}
		batch = append(batch, d)
		tokens += o.Length
	}
	var cpu, wall []float64
	for i := range repetitions + 1 {
		start, begin := cpuTime(), time.Now()
		if _, err := tr.ForwardBackward(ctx, batch, nn.Loss{Kind: nn.CrossEntropy, Reduction: nn.TokenMean}); err != nil {
			return nil, err
		}
		if _, err := tr.OptimStep(nn.AdamParams{LearningRate: 1e-4, GradClip: 1}); err != nil {
			return nil, err
		}
		if i > 0 { // the first step allocates
			cpu, wall = append(cpu, (cpuTime()-start).Seconds()), append(wall, time.Since(begin).Seconds())
		}
	}
	body := float64(cfg.NumParams() - cfg.Vocab*cfg.Dim)
	head := float64(cfg.Vocab*cfg.Dim) * o.Trained
	flop := float64(tokens) * (6*(body+head) + 6*float64(cfg.Layers*o.Length*cfg.Dim))
	name := fmt.Sprintf("train %s %s V=%d T=%d, %.2gM parameters", preset, tr.Kernel(), cfg.Vocab, o.Length, float64(cfg.NumParams())/1e6)
	return []metric.Figure{
		{Name: name, Value: flop / median(cpu) / 1e9, Unit: "GFLOP per CPU-second"},
		{Name: name, Value: float64(tokens) / median(cpu), Unit: "tokens per CPU-second"},
		{Name: name, Value: float64(tokens) / median(wall), Unit: "tokens per second"},
	}, nil
}

// Decode measures decoding steps of a batch whose sequences hold about 256 tokens (or half the context, if less).
func Decode(ctx context.Context, preset string, batch, threads int) ([]metric.Figure, error) {
	m, err := model(preset, 0)
	if err != nil {
		return nil, err
	}
	w := m.Pack()
	d := nn.NewDecoder(w, nn.DecoderOptions{Threads: threads})
	defer d.Close()
	cfg := m.Config()
	length := min(256, cfg.Context/2)
	caches, prompts, ids := make([]*nn.Cache, batch), make([][]int32, batch), make([]int32, batch)
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range caches {
		caches[i] = d.NewCache(length + 16)
		prompts[i] = make([]int32, length)
		for j := range prompts[i] {
			prompts[i][j] = int32(rng.IntN(cfg.Vocab))
		}
		ids[i] = prompts[i][0]
	}
	start := cpuTime()
	if _, err := d.Extend(caches, prompts); err != nil {
		return nil, err
	}
	prefill := (cpuTime() - start).Seconds()
	var cpu, wall []float64
	for range repetitions {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		steps := 0
		start, begin := cpuTime(), time.Now()
		for cpuTime()-start < 80*time.Millisecond {
			if _, err := d.Step(caches, ids); err != nil {
				return nil, err
			}
			steps++
			for _, c := range caches {
				c.Truncate(length)
			}
		}
		cpu = append(cpu, (cpuTime()-start).Seconds()/float64(steps))
		wall = append(wall, time.Since(begin).Seconds()/float64(steps))
	}
	name := fmt.Sprintf("decode %s %s V=%d batch %d context %d", preset, w.Kernel(), cfg.Vocab, batch, length)
	return []metric.Figure{
		{Name: name, Value: float64(batch) / median(cpu), Unit: "tokens per CPU-second"},
		{Name: name, Value: float64(batch) / median(wall), Unit: "tokens per second"},
		{Name: "prefill" + name[6:], Value: float64(batch*length) / prefill, Unit: "tokens per CPU-second"},
	}, nil
}
