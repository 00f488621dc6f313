package nn_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"agentrl/internal/nn"
)

func TestZZCopy(t *testing.T) {
	cfg, _ := nn.Preset("pico", 448)
	m, err := nn.NewModel(cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := nn.NewTrainer(m, nn.TrainerOptions{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for step := 0; step < 1500; step++ {
		var b []nn.Datum
		for range 16 {
			n := 12
			d := nn.Datum{}
			var xs []int32
			for range n {
				xs = append(xs, int32(10+r.IntN(20)))
			}
			d.Tokens = append(d.Tokens, 1)
			d.Tokens = append(d.Tokens, xs...)
			d.Tokens = append(d.Tokens, 2)
			d.Tokens = append(d.Tokens, xs...)
			d.Weights = make([]float32, len(d.Tokens))
			for i := n + 2; i < len(d.Tokens); i++ {
				d.Weights[i] = 1
			}
			b = append(b, d)
		}
		out, err := tr.ForwardBackward(context.Background(), b, nn.Loss{Kind: nn.CrossEntropy, Reduction: nn.TokenMean, Temperature: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.OptimStep(nn.AdamParams{LearningRate: 3e-3, GradClip: 1}); err != nil {
			t.Fatal(err)
		}
		if step%100 == 0 {
			fmt.Println(step, out.Loss, out.Correct)
		}
	}
}
