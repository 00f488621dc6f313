package native

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"agentrl/internal/chat"
	"agentrl/internal/engine"
	"agentrl/internal/errs"
	"agentrl/internal/policy"
	"agentrl/internal/tokenizer"
	"agentrl/internal/trajectory"
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

func TestSamplerAndTrainerAgree(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	train(t, e, 1)
	p := publish(t, e, 1)
	rng := rand.New(rand.NewPCG(1, 9))
	for _, temperature := range []float64{1, 0.7} {
		var batch []engine.Datum
		var want [][]float32
		var starts []int
		for i := range 5 {
			prompt := randomIDs(rng, 5+9*i)
			c := generate(t, p, policy.Prompt{IDs: prompt, Stops: noStop}, policy.Sampling{Temperature: temperature, MaxNewTokens: 20, Seed: uint64(i)})
			if len(c.IDs) != 20 || c.Finish != trajectory.FinishLength || len(c.KeptMass) != 0 {
				t.Fatalf("%d tokens, finish %s, %d kept masses", len(c.IDs), c.Finish, len(c.KeptMass))
			}
			batch = append(batch, engine.Datum{Tokens: append(prompt, c.IDs...)})
			want, starts = append(want, c.Logprobs), append(starts, len(prompt))
		}
		got, err := e.Forward(t.Context(), batch, temperature)
		if err != nil {
			t.Fatal(err)
		}
		for i := range batch {
			for j, lp := range want[i] {
				if d := math.Abs(float64(lp - got[i][starts[i]+j])); !(d <= 1e-5) {
					t.Errorf("temperature %v, sequence %d, token %d: sampler %v, trainer %v", temperature, i, j, lp, got[i][starts[i]+j])
				}
			}
		}
	}
}

func TestCachedTurnsEqualFullPrefill(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	p := publish(t, e, 0)
	rng := rand.New(rand.NewPCG(2, 9))
	ids := randomIDs(rng, 20)
	for turn := range 4 {
		s := policy.Sampling{Temperature: 1, MaxNewTokens: 6, Seed: uint64(turn)}
		cached := generate(t, p, policy.Prompt{IDs: ids, CacheKey: "a", Stops: noStop}, s)
		full := generate(t, p, policy.Prompt{IDs: ids, Stops: noStop}, s)
		if err := sameCompletion(cached, full); err != nil {
			t.Errorf("turn %d: %v", turn, err)
		}
		if full.CachedTokens != 0 {
			t.Error("without a key nothing may be cached")
		}
		// All but the last sampled token of the turn before are in the cache.
		if want := len(ids) - 8; turn > 0 && cached.CachedTokens != want {
			t.Errorf("turn %d: %d tokens came from the cache, want %d", turn, cached.CachedTokens, want)
		}
		ids = append(slices.Concat(ids, cached.IDs), randomIDs(rng, 7)...)
	}
	// A rewound history uses the common prefix only.
	back := append(slices.Clone(ids[:15]), 1, 2, 3)
	s := policy.Sampling{Temperature: 1, MaxNewTokens: 6, Seed: 9}
	a := generate(t, p, policy.Prompt{IDs: back, CacheKey: "a", Stops: noStop}, s)
	b := generate(t, p, policy.Prompt{IDs: back, Stops: noStop}, s)
	if err := sameCompletion(a, b); err != nil || a.CachedTokens != 15 {
		t.Errorf("after rewinding: %v, %d cached", err, a.CachedTokens)
	}
	p.(policy.Forgetter).Forget("a")
	if c := generate(t, p, policy.Prompt{IDs: back, CacheKey: "a", Stops: noStop}, s); c.CachedTokens > len(back)-1 || sameCompletion(a, c) != nil {
		t.Error("forgetting changed the result")
	}
}

func TestResultsDoNotDependOnTheBatch(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 9))
	type request struct {
		p policy.Prompt
		s policy.Sampling
	}
	var requests []request
	for i := range 33 {
		r := request{policy.Prompt{IDs: randomIDs(rng, 3+rng.IntN(60)), Stops: noStop}, policy.Sampling{Temperature: 1, MaxNewTokens: 1 + rng.IntN(20), Seed: rng.Uint64()}}
		switch i % 4 {
		case 1:
			r.s.TopK = 5
		case 2:
			r.s.TopP = 0.8
		case 3:
			r.p.CacheKey = fmt.Sprint(i)
		}
		requests = append(requests, r)
	}
	alone := make([]policy.Completion, len(requests))
	e := newEngine(t, func(o *Options) { o.Threads = 1 })
	p := publish(t, e, 0)
	for i, r := range requests {
		alone[i] = generate(t, p, r.p, r.s)
	}
	for _, threads := range []int{1, 3} {
		for _, maxBatch := range []int{4, 64} {
			e := newEngine(t, func(o *Options) { o.Threads, o.MaxBatch = threads, maxBatch })
			p := publish(t, e, 0)
			var wg sync.WaitGroup
			for i, r := range requests {
				wg.Go(func() {
					c, err := p.Generate(t.Context(), r.p, r.s)
					if err != nil {
						t.Error(err)
						return
					}
					if err := sameCompletion(c, alone[i]); err != nil {
						t.Errorf("%d threads, batch %d, request %d: %v", threads, maxBatch, i, err)
					}
				})
			}
			wg.Wait()
		}
	}
}

func TestGroupSharesItsOpening(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(o *Options) { o.Threads = 1 })
	p := publish(t, e, 0)
	ids := randomIDs(rand.New(rand.NewPCG(4, 9)), 60)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			s := policy.Sampling{Temperature: 1, MaxNewTokens: 4, Seed: uint64(i)}
			c, err := p.Generate(t.Context(), policy.Prompt{IDs: ids, CacheKey: fmt.Sprint(i), Stops: noStop}, s)
			if err != nil {
				t.Error(err)
				return
			}
			full, err := p.Generate(t.Context(), policy.Prompt{IDs: ids, Stops: noStop}, s)
			if err != nil {
				t.Error(err)
				return
			}
			if err := sameCompletion(c, full); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	// One opening of 60, seven times its last token, eight times in full for comparison.
	if got, want := e.Stats().PromptTokens, int64(60+7+8*60); got != want {
		t.Errorf("%d prompt tokens were computed, want %d", got, want)
	}
}

func TestVersionIsolation(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	p0 := publish(t, e, 0)
	prompt := policy.Prompt{IDs: randomIDs(rand.New(rand.NewPCG(5, 9)), 30), CacheKey: "a", Stops: noStop}
	s := policy.Sampling{Temperature: 1, MaxNewTokens: 12, Seed: 4}
	before := generate(t, p0, prompt, s)

	train(t, e, 1)
	p1 := publish(t, e, 1)
	one := generate(t, p1, prompt, s)
	if one.CachedTokens != 0 {
		t.Error("a cache filled under version 0 was read under version 1")
	}
	if slices.Equal(one.Logprobs, before.Logprobs) || one.Digest == before.Digest || one.Version != 1 {
		t.Error("version 1 answers like version 0")
	}
	train(t, e, 2)
	publish(t, e, 2)
	again := generate(t, p0, prompt, s)
	if err := sameCompletion(before, again); err != nil {
		t.Errorf("version 0 changed by later publications: %v", err)
	}
	if again.Version != 0 || again.Digest != before.Digest {
		t.Error("version or digest changed")
	}
	if err := e.Release(0); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Sampler(0); errs.CodeOf(err) != errs.NotFound {
		t.Errorf("a released version can be had: %v", err)
	}
	late := generate(t, p0, prompt, s)
	if err := sameCompletion(before, late); err != nil {
		t.Errorf("a turn about to start when its version was released: %v", err)
	}
	if err := e.Release(0); errs.CodeOf(err) != errs.NotFound {
		t.Errorf("released twice: %v", err)
	}
}

func TestPublishRefuses(t *testing.T) {
	t.Parallel()
	e := newEngine(t, func(o *Options) { o.Versions = 2 })
	publish(t, e, 3)
	if _, err := e.Publish(t.Context(), 3); errs.CodeOf(err) != errs.Conflict {
		t.Errorf("published twice: %v", err)
	}
	if _, err := e.Publish(t.Context(), -1); errs.CodeOf(err) != errs.Invalid {
		t.Errorf("negative version: %v", err)
	}
	publish(t, e, 4)
	if _, err := e.Publish(t.Context(), 5); errs.CodeOf(err) != errs.Conflict {
		t.Errorf("too many versions: %v", err)
	}
	if err := e.Release(3); err != nil {
		t.Fatal(err)
	}
	publish(t, e, 5)
}

func TestCancellation(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	p := publish(t, e, 0)
	gate := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	errc := make(chan error, 1)
	go func() {
		// The constraint tells that decoding has begun, and that it does not go on for long after the cancellation.
		_, err := p.Generate(ctx, policy.Prompt{IDs: []int32{1, 2, 3}, CacheKey: "a", Constraint: &gated{gate: gate}, Stops: noStop}, policy.Sampling{Temperature: 1, MaxNewTokens: 100})
		errc <- err
	}()
	<-gate // first token
	cancel()
	if err := <-errc; err != context.Canceled {
		t.Errorf("got %v, want the context's error", err)
	}
	steps := 0
	for done := false; !done; {
		select {
		case <-gate:
			steps++
		default:
			done = e.Stats().Live == 0
		}
	}
	if steps > 2 {
		t.Errorf("%d steps after the cancellation", steps)
	}
	if s := e.Stats(); s.CacheEntries != 0 {
		t.Errorf("%d caches are kept of a cancelled generation", s.CacheEntries)
	}
	if _, err := p.Generate(ctx, policy.Prompt{IDs: []int32{1}}, policy.Sampling{MaxNewTokens: 1}); err != context.Canceled {
		t.Errorf("started with a cancelled context: %v", err)
	}
}

// gated allows everything and hands over one value per step.
type gated struct{ gate chan struct{} }

func (g *gated) Begin() policy.ConstraintState { return g }
func (g *gated) Accept(int32)                  {}
func (g *gated) Allow(mask []bool) {
	g.gate <- struct{}{}
	for i := range mask {
		mask[i] = true
	}
}

func TestCloseEndsGenerations(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	p := publish(t, e, 0)
	gate := make(chan struct{}, 1000)
	errc := make(chan error, 1)
	go func() {
		_, err := p.Generate(context.Background(), policy.Prompt{IDs: []int32{1}, Constraint: &gated{gate: gate}, Stops: noStop}, policy.Sampling{Temperature: 1, MaxNewTokens: 120})
		errc <- err
	}()
	<-gate
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-errc; err != nil && errs.CodeOf(err) != errs.Unavailable {
		t.Errorf("got %v", err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if _, err := p.Generate(t.Context(), policy.Prompt{IDs: []int32{1}}, policy.Sampling{MaxNewTokens: 1}); errs.CodeOf(err) != errs.Unavailable {
		t.Errorf("generating after closing: %v", err)
	}
	if _, err := e.Publish(t.Context(), 9); errs.CodeOf(err) != errs.Unavailable {
		t.Errorf("publishing after closing: %v", err)
	}
}

func TestStopsAndLimits(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	p := publish(t, e, 0)
	all := make([]int32, 256)
	for i := range all {
		all[i] = int32(i)
	}
	full := generate(t, p, policy.Prompt{IDs: []int32{1, 2}, Stops: noStop}, policy.Sampling{Temperature: 1, MaxNewTokens: 10, Seed: 1})
	c := generate(t, p, policy.Prompt{IDs: []int32{1, 2}, Stops: []int32{full.IDs[3]}}, policy.Sampling{Temperature: 1, MaxNewTokens: 10, Seed: 1})
	at := slices.Index(full.IDs, full.IDs[3]) + 1
	if c.Finish != trajectory.FinishStop || !slices.Equal(c.IDs, full.IDs[:at]) || !slices.Equal(c.Logprobs, full.Logprobs[:at]) {
		t.Errorf("stopped with %v (%s), want %v", c.IDs, c.Finish, full.IDs[:at])
	}
	long := randomIDs(rand.New(rand.NewPCG(1, 1)), 125)
	if c := generate(t, p, policy.Prompt{IDs: long, Stops: noStop}, policy.Sampling{Temperature: 1, MaxNewTokens: 10}); len(c.IDs) != 3 || c.Finish != trajectory.FinishLength {
		t.Errorf("at the end of the context: %d tokens, %s", len(c.IDs), c.Finish)
	}
	if c := generate(t, p, policy.Prompt{IDs: randomIDs(rand.New(rand.NewPCG(1, 1)), 128)}, policy.Sampling{Temperature: 1, MaxNewTokens: 10}); len(c.IDs) != 0 || c.Finish != trajectory.FinishLength {
		t.Errorf("no room at all: %d tokens, %s", len(c.IDs), c.Finish)
	}
	for name, r := range map[string]struct {
		ids []int32
		s   policy.Sampling
	}{
		"empty prompt":   {nil, policy.Sampling{MaxNewTokens: 1}},
		"id too large":   {[]int32{1, 5000}, policy.Sampling{MaxNewTokens: 1}},
		"negative id":    {[]int32{-1}, policy.Sampling{MaxNewTokens: 1}},
		"no tokens":      {[]int32{1}, policy.Sampling{}},
		"temperature":    {[]int32{1}, policy.Sampling{MaxNewTokens: 1, Temperature: math.NaN()}},
		"top p":          {[]int32{1}, policy.Sampling{MaxNewTokens: 1, TopP: 1.5}},
		"min p":          {[]int32{1}, policy.Sampling{MaxNewTokens: 1, MinP: -1}},
		"negative top k": {[]int32{1}, policy.Sampling{MaxNewTokens: 1, TopK: -1}},
	} {
		if _, err := p.Generate(t.Context(), policy.Prompt{IDs: r.ids}, r.s); errs.CodeOf(err) != errs.Invalid || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConstrainedDecoding(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	p := publish(t, e, 0)
	f, err := chat.NewCompact(e.Tokenizer())
	if err != nil {
		t.Fatal(err)
	}
	bound, err := f.With([]trajectory.Tool{{Name: "take_action", Parameters: json.RawMessage(`{"type":"object","properties":{"action":{"type":"string"}},"required":["action"]}`)}})
	if err != nil {
		t.Fatal(err)
	}
	b := chat.NewBuilder(bound, []trajectory.Message{{Role: trajectory.User, Content: "You see a desk 1 and a mug 1."}})
	admissible := map[string]bool{}
	var msgs []trajectory.Message
	for _, a := range []string{"go to desk 1", "go to desk 2", "take mug 1 from desk 1"} {
		args := fmt.Sprintf(`{"action":%q}`, a)
		admissible[args] = true
		msgs = append(msgs, trajectory.Message{Role: trajectory.Assistant, ToolCalls: []trajectory.ToolCall{{Name: "take_action", Arguments: args}}})
	}
	con, err := chat.Admissible(bound, msgs)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for seed := range uint64(60) {
		s := policy.Sampling{Temperature: 1, MaxNewTokens: 32, Seed: seed}
		c := generate(t, p, policy.Prompt{IDs: b.Prompt(), CacheKey: "a", Constraint: con}, s)
		msg, err := bound.Parse(c.IDs)
		if err != nil || c.Finish != trajectory.FinishStop || len(msg.ToolCalls) != 1 || !admissible[msg.ToolCalls[0].Arguments] {
			t.Fatalf("%q is not admissible (%v)", e.Tokenizer().Decode(c.IDs), err)
		}
		seen[msg.ToolCalls[0].Arguments] = true
		if len(c.KeptMass) != len(c.IDs) {
			t.Fatal("a constraint truncates, so the kept mass must be returned")
		}
		free := generate(t, p, policy.Prompt{IDs: b.Prompt()}, s)
		allowAll := generate(t, p, policy.Prompt{IDs: b.Prompt(), CacheKey: "b"}, s)
		if err := sameCompletion(free, allowAll); err != nil || len(free.KeptMass) != 0 {
			t.Errorf("off must change nothing: %v", err)
		}
	}
	if len(seen) != 3 {
		t.Errorf("only %d of 3 admissible calls were drawn", len(seen))
	}
	for seed := range uint64(20) {
		c := generate(t, p, policy.Prompt{IDs: b.Prompt(), Constraint: bound.(*chat.Compact).ToolCallGrammar()}, policy.Sampling{Temperature: 1, MaxNewTokens: 60, Seed: seed})
		if c.Finish != trajectory.FinishStop {
			continue
		}
		if msg, err := bound.Parse(c.IDs); err != nil || len(msg.ToolCalls) != 1 {
			t.Errorf("%q: %v", e.Tokenizer().Decode(c.IDs), err)
		}
	}
}

func TestReferenceStaysFrozen(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	batch := []engine.Datum{{Tokens: randomIDs(rand.New(rand.NewPCG(6, 9)), 30)}}
	if _, err := e.ForwardReference(t.Context(), batch, 1); errs.CodeOf(err) != errs.Conflict {
		t.Errorf("without a reference: %v", err)
	}
	before, err := e.Forward(t.Context(), batch, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.SetReference(t.Context()); err != nil {
		t.Fatal(err)
	}
	train(t, e, 1)
	ref, err := e.ForwardReference(t.Context(), batch, 1)
	if err != nil {
		t.Fatal(err)
	}
	now, err := e.Forward(t.Context(), batch, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(ref[0], before[0]) || slices.Equal(now[0], before[0]) {
		t.Error("the reference moved, or the model did not")
	}
}

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
