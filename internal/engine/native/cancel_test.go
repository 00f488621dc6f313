package native

import (
	"context"
	"testing"

	"agentrl/internal/errs"
	"agentrl/internal/policy"
)

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
