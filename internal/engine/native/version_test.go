package native

import (
	"math/rand/v2"
	"slices"
	"testing"

	"agentrl/internal/engine"
	"agentrl/internal/errs"
	"agentrl/internal/policy"
)

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
