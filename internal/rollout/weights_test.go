package rollout

import (
	"context"
	"slices"
	"testing"

	"agentrl/internal/engine"
)

func TestWeightsReleaseWhatNobodyUses(t *testing.T) {
	t.Parallel()
	eng := &fakeEngine{}
	w := NewWeights(eng, SyncTurn)
	if _, err := w.Acquire(t.Context(), "current"); err == nil {
		t.Error("a turn began without weights")
	}
	for v := range engine.Version(3) {
		w.Track(v)
		w.Set(map[string]engine.Version{"current": v, "stale": 0})
	}
	turn, err := w.Acquire(t.Context(), "current")
	if err != nil || turn.Version != 2 {
		t.Fatalf("%+v %v", turn, err)
	}
	w.Track(3)
	w.Set(map[string]engine.Version{"current": 3})
	if err := w.Collect(); err != nil || !slices.Equal(eng.gone(), []engine.Version{1}) {
		t.Fatalf("released %v, %v", eng.gone(), err)
	}
	if turn.Restarted() || turn.Ctx.Err() != nil {
		t.Error("a running turn was disturbed")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := w.Room(ctx, 2); err == nil {
		t.Error("there is no room while the turn runs")
	}
	turn.Done()
	turn.Done()
	if err := w.Room(t.Context(), 2); err != nil || !slices.Equal(eng.gone(), []engine.Version{1, 2}) {
		t.Errorf("released %v, %v", eng.gone(), err)
	}
	if n := w.Names(); n["current"] != 3 || n["stale"] != 0 || w.Version("none") != -1 {
		t.Errorf("names %v", n)
	}
}

func TestWeightsRestartTurns(t *testing.T) {
	t.Parallel()
	w := NewWeights(&fakeEngine{}, SyncRestart)
	w.Track(0)
	w.Set(map[string]engine.Version{"current": 0, "stale": 0})
	cur, _ := w.Acquire(t.Context(), "current")
	old, _ := w.Acquire(t.Context(), "stale")
	w.Track(1)
	w.Set(map[string]engine.Version{"current": 1})
	<-cur.Ctx.Done()
	if !cur.Restarted() || old.Restarted() {
		t.Error("exactly the turns of replaced weights must restart")
	}
	cur.Done()
	old.Done()
}

func TestWeightsDrain(t *testing.T) {
	t.Parallel()
	w := NewWeights(&fakeEngine{}, SyncDrain)
	w.Track(0)
	w.Set(map[string]engine.Version{"current": 0})
	turn, _ := w.Acquire(t.Context(), "current")
	ready := make(chan error)
	go func() { ready <- w.Prepare(t.Context()) }()
	turn.Done()
	if err := <-ready; err != nil {
		t.Fatal(err)
	}
	got := make(chan engine.Version)
	go func() {
		next, err := w.Acquire(t.Context(), "current")
		if err != nil {
			got <- -1
			return
		}
		next.Done()
		got <- next.Version
	}()
	w.Track(1)
	w.Set(map[string]engine.Version{"current": 1})
	if v := <-got; v != 1 {
		t.Errorf("the turn after draining used version %d", v)
	}
}
