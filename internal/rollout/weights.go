package rollout

import (
	"context"
	"errors"
	"slices"
	"sync"

	"agentrl/internal/engine"
	"agentrl/internal/policy"
)

// The ways in which running generations meet new weights (method.md 6.5).
const (
	SyncTurn    = "turn"         // a turn finishes with the version it began with
	SyncRestart = "restart_turn" // a turn is cancelled and written again by the new version
	SyncDrain   = "drain"        // new turns wait until running ones have ended and the weights have changed
)

// errRestart is the cause of a turn's cancellation when its weights were replaced.
var errRestart = errors.New("the weights were replaced")

// Samplers is the part of an engine that hands out and frees versions.
type Samplers interface {
	Sampler(v engine.Version) (policy.Policy, error)
	Release(v engine.Version) error
}

// Weights maps the names of pool members to published versions and counts who still uses each version. Acquire may be
// called by any goroutine; the other methods belong to the trainer, which also is who calls the engine.
type Weights struct {
	mode string
	eng  Samplers

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	named   map[string]engine.Version
	using   map[engine.Version]int
	turns   map[*Turn]struct{}
	closed  bool // drain: no new turns
}

// NewWeights starts without versions.
func NewWeights(eng Samplers, mode string) *Weights {
	return &Weights{mode: mode, eng: eng, changed: make(chan struct{}), named: map[string]engine.Version{},
		using: map[engine.Version]int{}, turns: map[*Turn]struct{}{}}
}

// Turn is the right to generate with one version. Ctx ends early when the weights are replaced under restart_turn.
type Turn struct {
	Policy  policy.Policy
	Version engine.Version
	Ctx     context.Context

	w      *Weights
	name   string
	cancel context.CancelCauseFunc
	once   sync.Once
}

// Restarted says whether the turn was cancelled because its weights were replaced.
func (t *Turn) Restarted() bool { return context.Cause(t.Ctx) == errRestart }

// Done gives the version back. It is idempotent.
func (t *Turn) Done() {
	t.once.Do(func() {
		t.cancel(nil)
		w := t.w
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.turns, t)
		w.using[t.Version]--
		w.signal()
	})
}

// Acquire returns the present version of a member. Under drain it waits while weights are exchanged.
func (w *Weights) Acquire(ctx context.Context, name string) (*Turn, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		w.mu.Lock()
		if !w.closed {
			v, ok := w.named[name]
			if !ok {
				w.mu.Unlock()
				return nil, errors.New("no weights are published as " + name)
			}
			p, err := w.eng.Sampler(v)
			if err != nil {
				w.mu.Unlock()
				return nil, err
			}
			t := &Turn{Policy: p, Version: v, w: w, name: name}
			t.Ctx, t.cancel = context.WithCancelCause(ctx)
			w.using[v]++
			w.turns[t] = struct{}{}
			w.mu.Unlock()
			return t, nil
		}
		wait := w.changed
		w.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Version returns the version of a name, or -1.
func (w *Weights) Version(name string) engine.Version {
	w.mu.Lock()
	defer w.mu.Unlock()
	if v, ok := w.named[name]; ok {
		return v
	}
	return -1
}

// Names returns the present versions by name, for a checkpoint.
func (w *Weights) Names() map[string]engine.Version {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[string]engine.Version, len(w.named))
	for k, v := range w.named {
		out[k] = v
	}
	return out
}

// Prepare must be called before the engine publishes: under drain it stops new turns and waits for running ones.
func (w *Weights) Prepare(ctx context.Context) error {
	if w.mode != SyncDrain {
		return nil
	}
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	return w.wait(ctx, func() bool { return len(w.turns) == 0 })
}

// Set makes published versions the ones that new turns use, opens the gate that Prepare closed, and under restart_turn
// cancels the turns of replaced versions. A version of -1 removes the name.
func (w *Weights) Set(versions map[string]engine.Version) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, v := range versions {
		if v < 0 {
			delete(w.named, name)
			continue
		}
		w.named[name] = v
	}
	if w.mode == SyncRestart {
		for t := range w.turns {
			if v, ok := w.named[t.name]; ok && v != t.Version {
				t.cancel(errRestart)
			}
		}
	}
	w.closed = false
	w.signal()
}

// Collect frees the versions that nobody names or uses, oldest first.
func (w *Weights) Collect() error {
	w.mu.Lock()
	var free []engine.Version
	for v, n := range w.using {
		if n == 0 && !w.isNamed(v) {
			free = append(free, v)
			delete(w.using, v)
		}
	}
	w.mu.Unlock()
	slices.Sort(free)
	var err error
	for _, v := range free {
		err = errors.Join(err, w.eng.Release(v))
	}
	return err
}

// Track makes Collect responsible for a version that was just published.
func (w *Weights) Track(v engine.Version) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.using[v] += 0
}

// Room waits until at most most versions are resident, so that one more can be published.
func (w *Weights) Room(ctx context.Context, most int) error {
	for {
		if err := w.Collect(); err != nil {
			return err
		}
		w.mu.Lock()
		n, wait := len(w.using), w.changed
		w.mu.Unlock()
		if n <= most {
			return nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *Weights) isNamed(v engine.Version) bool {
	for _, n := range w.named {
		if n == v {
			return true
		}
	}
	return false
}

func (w *Weights) wait(ctx context.Context, until func() bool) error {
	for {
		w.mu.Lock()
		if until() {
			w.mu.Unlock()
			return nil
		}
		wait := w.changed
		w.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// signal wakes everyone who waits; the lock is held.
func (w *Weights) signal() {
	close(w.changed)
	w.changed = make(chan struct{})
}
