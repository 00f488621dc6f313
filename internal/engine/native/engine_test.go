package native

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"agentrl/internal/chat"
	"agentrl/internal/engine"
	"agentrl/internal/errs"
	"agentrl/internal/policy"
	"agentrl/internal/tokenizer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testTokenizer(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	texts := []string{"go to desk 1", "go to desk 2", "take mug 1 from desk 1", "You see a desk 1 and a mug 1.", "Nothing happens."}
	tok, err := tokenizer.Train(slices.Values(slices.Concat(texts, texts)), tokenizer.TrainOptions{VocabSize: 320, Special: chat.SpecialTokens()})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func newEngine(t testing.TB, change func(*Options)) *Engine {
	t.Helper()
	opt := Options{Base: "pico", Tokenizer: testTokenizer(t), Seed: 1, Threads: 2, MaxContext: 128, MicroBatchTokens: 512}
	if change != nil {
		change(&opt)
	}
	e, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func publish(t testing.TB, e *Engine, v engine.Version) policy.Policy {
	t.Helper()
	if _, err := e.Publish(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	p, err := e.Sampler(v)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func generate(t testing.TB, p policy.Policy, pr policy.Prompt, s policy.Sampling) policy.Completion {
	t.Helper()
	c, err := p.Generate(t.Context(), pr, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// train makes one step on random tokens so that the weights change.
func train(t testing.TB, e *Engine, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	d := engine.Datum{Tokens: randomIDs(rng, 40), Weights: make([]float32, 40)}
	for i := 1; i < 40; i++ {
		d.Weights[i] = 1
	}
	if _, err := e.ForwardBackward(t.Context(), []engine.Datum{d}, engine.Loss{Kind: engine.CrossEntropy, Reduction: engine.TokenMean}); err != nil {
		t.Fatal(err)
	}
	if _, err := e.OptimStep(t.Context(), engine.AdamParams{LearningRate: 3e-3, GradClip: 1}); err != nil {
		t.Fatal(err)
	}
}

func randomIDs(rng *rand.Rand, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(rng.IntN(256))
	}
	return ids
}

func sameCompletion(a, b policy.Completion) error {
	switch {
	case !slices.Equal(a.IDs, b.IDs):
		return fmt.Errorf("ids %v and %v", a.IDs, b.IDs)
	case !slices.Equal(a.Logprobs, b.Logprobs):
		return fmt.Errorf("log-probs differ")
	case !slices.Equal(a.KeptMass, b.KeptMass):
		return fmt.Errorf("kept masses differ")
	case a.Finish != b.Finish:
		return fmt.Errorf("finish %s and %s", a.Finish, b.Finish)
	}
	return nil
}

// noStop never ends a generation early.
var noStop = []int32{1 << 20}

func TestMemoryRefusal(t *testing.T) {
	t.Parallel()
	_, err := New(Options{Base: "mini", Tokenizer: testTokenizer(t), MemoryLimit: 100 << 20})
	if errs.CodeOf(err) != errs.Invalid || err == nil {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"limit is 104.9 MB", "trainer", "reference", "4 published versions", "activations of 4096 tokens", "KV cache", "in all"} {
		if !contains(err.Error(), want) {
			t.Errorf("the message lacks %q:\n%v", want, err)
		}
	}
	if machineMemory() <= 0 {
		t.Error("no memory found")
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]Options{
		"no tokenizer": {Base: "pico"},
		"no base":      {Tokenizer: testTokenizer(t)},
		"no directory": {Base: t.TempDir() + "/none", Tokenizer: testTokenizer(t)},
		"context":      {Base: "pico", Tokenizer: testTokenizer(t), MaxContext: 1},
	} {
		if _, err := New(opt); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func contains(s, part string) bool { return strings.Contains(s, part) }
