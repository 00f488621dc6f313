package rollout

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentrl/internal/trajectory"
)

func TestMixerFollowsWeightsAndPasses(t *testing.T) {
	t.Parallel()
	m, err := NewMixer([]MixTask{{"a", 3, 10}, {"b", 1, 7}, {"c", 0, 5}}, 9)
	if err != nil {
		t.Fatal(err)
	}
	counts, samples := map[string]int{}, map[string]map[int64]int{"a": {}, "b": {}}
	var first []Draw
	for i := range 400 {
		d := m.Next()
		if d.ID != int64(i) {
			t.Fatalf("draw %d has id %d", i, d.ID)
		}
		counts[d.Task]++
		samples[d.Task][d.Sample]++
		first = append(first, d)
	}
	if counts["a"] != 300 || counts["b"] != 100 {
		t.Errorf("counts %v", counts)
	}
	for task, seen := range samples {
		least, most := 1000, 0
		for _, n := range seen {
			least, most = min(least, n), max(most, n)
		}
		if most-least > 1 || len(seen) != map[string]int{"a": 10, "b": 7}[task] {
			t.Errorf("task %s: samples drawn %v", task, seen)
		}
	}
	again, _ := NewMixer([]MixTask{{"a", 3, 10}, {"b", 1, 7}}, 9)
	for range 150 {
		again.Next()
	}
	third, _ := NewMixer([]MixTask{{"a", 3, 10}, {"b", 1, 7}}, 9)
	if err := third.Restore(again.State()); err != nil {
		t.Fatal(err)
	}
	for i := 150; i < 400; i++ {
		if d := third.Next(); d != first[i] {
			t.Fatalf("draw %d after Restore is %+v, want %+v", i, d, first[i])
		}
	}
	if err := third.Restore(MixerState{Next: 5}); err == nil {
		t.Error("a position of other tasks was accepted")
	}
	if _, err := NewMixer([]MixTask{{"a", 0, 1}}, 1); err == nil {
		t.Error("weights of zero were accepted")
	}
}

func TestPermuteIsAPermutation(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{1, 2, 3, 10, 64, 1000} {
		seen := map[int64]bool{}
		for i := range n {
			v := Permute(77, n, i)
			if v < 0 || v >= n || seen[v] {
				t.Fatalf("Permute(%d, %d) = %d", n, i, v)
			}
			seen[v] = true
		}
	}
}

func TestSyncTakesDrawsInOrder(t *testing.T) {
	t.Parallel()
	p := NewPipeline(func() PipelineOptions {
		o := testOptions(t, func(_ context.Context, s Slot) *trajectory.Trajectory { return ended(s, trajectory.Completed, 1) })
		o.Sync = true
		return o
	}(), Counts{})
	p.Start(t.Context())
	defer p.Stop()
	next := int64(0)
	for range 5 {
		groups, err := p.Take(t.Context(), 3, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(groups) != 3 {
			t.Fatalf("%d groups", len(groups))
		}
		for _, g := range groups {
			if g.Draw.ID != next || len(g.Members) != 4 || g.Members[2].Member != 2 {
				t.Errorf("group %+v, want draw %d", g.Draw, next)
			}
			next++
			p.Resolve(g, false)
			p.Resolve(g, false) // twice does nothing
		}
		balance(t, p)
	}
	if c := p.Counts(); c.Trained != 60 || c.In != 60 {
		t.Errorf("counts %+v", c)
	}
}

func TestAsyncHoldsGateAndBounds(t *testing.T) {
	t.Parallel()
	var running, most atomic.Int64
	p := NewPipeline(testOptions(t, func(_ context.Context, s Slot) *trajectory.Trajectory {
		n := running.Add(1)
		for {
			m := most.Load()
			if n <= m || most.CompareAndSwap(m, n) {
				break
			}
		}
		running.Add(-1)
		return ended(s, trajectory.Completed, float64(s.Member%2))
	}), Counts{})
	p.Start(t.Context())
	defer p.Stop()
	seen := map[int64]bool{}
	for range 50 {
		groups, err := p.Take(t.Context(), 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(groups) < 2 || len(groups) > 3 {
			t.Fatalf("took %d groups", len(groups))
		}
		p.mu.Lock()
		if p.held > p.opt.Gate || p.buffered > p.opt.BufferMax || len(p.slots) > p.opt.QueueMax {
			t.Errorf("held %d, buffered %d, queued %d", p.held, p.buffered, len(p.slots))
		}
		p.mu.Unlock()
		for _, g := range groups {
			if seen[g.Draw.ID] {
				t.Errorf("draw %d was taken twice", g.Draw.ID)
			}
			seen[g.Draw.ID] = true
			p.Resolve(g, false)
		}
	}
	if most.Load() > 8 {
		t.Errorf("%d episodes ran at once", most.Load())
	}
}

func TestFailuresAreRetriedThenGroupsRelease(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	tries := map[int]int{}
	o := testOptions(t, func(_ context.Context, s Slot) *trajectory.Trajectory {
		mu.Lock()
		defer mu.Unlock()
		if s.Draw.ID == 0 {
			tries[s.Member]++
			// Member 0 fails once, member 1 always: the group is released with three members.
			if s.Member == 0 && s.Retry == 0 || s.Member == 1 {
				return ended(s, trajectory.WorkerLost, 0)
			}
		}
		return ended(s, trajectory.Completed, 1)
	})
	o.Sync = true
	p := NewPipeline(o, Counts{})
	p.Start(t.Context())
	defer p.Stop()
	groups, err := p.Take(t.Context(), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if g := groups[0]; g.Draw.ID != 0 || len(g.Members) != 3 || g.Members[0].Retry != 1 {
		t.Errorf("group %+v", g)
	}
	if tries[0] != 2 || tries[1] != 3 || tries[2] != 1 {
		t.Errorf("tries %v", tries)
	}
	aside := p.Aside()
	if len(aside) != 4 || aside[0].Dropped != reasonInfrastructure {
		t.Errorf("%d episodes aside", len(aside))
	}
	balance(t, p)
	if c := p.Counts(); c.Excluded[reasonInfrastructure] != 4 || c.In != 7 {
		t.Errorf("counts %+v", c)
	}
}

func TestGroupTooSmallIsPlayedAgainOnce(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	ids := map[Slot]int{}
	o := testOptions(t, func(_ context.Context, s Slot) *trajectory.Trajectory {
		mu.Lock()
		defer mu.Unlock()
		ids[Slot{Draw: Draw{ID: s.Draw.ID}, Member: s.Member, Retry: s.Retry}]++
		if s.Draw.ID == 0 && s.Member > 0 {
			return ended(s, trajectory.TaskError, 0)
		}
		return ended(s, trajectory.Completed, 1)
	})
	o.Sync, o.Retries = true, 2
	p := NewPipeline(o, Counts{})
	p.Start(t.Context())
	defer p.Stop()
	groups, err := p.Take(t.Context(), 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	if groups[0].Draw.ID != 1 || groups[1].Draw.ID != 2 {
		t.Errorf("took draws %d and %d", groups[0].Draw.ID, groups[1].Draw.ID)
	}
	for k, n := range ids {
		if n != 1 {
			t.Errorf("episode %+v was played %d times", k, n)
		}
	}
	if c := p.Counts(); c.Dropped[reasonSmall] != 2 || c.Excluded[reasonInfrastructure] != 12 {
		t.Errorf("counts %+v", c)
	}
	balance(t, p)
}

func TestGroupTimeoutCancelsTheRest(t *testing.T) {
	t.Parallel()
	o := testOptions(t, func(ctx context.Context, s Slot) *trajectory.Trajectory {
		if s.Draw.ID == 0 && s.Member == 3 {
			<-ctx.Done()
			return ended(s, trajectory.Cancelled, 0)
		}
		return ended(s, trajectory.Completed, 1)
	})
	o.Sync, o.GroupTimeout = true, time.Millisecond
	p := NewPipeline(o, Counts{})
	p.Start(t.Context())
	defer p.Stop()
	groups, err := p.Take(t.Context(), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(groups[0].Members) != 3 || p.Counts().Excluded[reasonTimeout] != 1 {
		t.Errorf("%d members, counts %+v", len(groups[0].Members), p.Counts())
	}
}

func TestPositionPlaysUnresolvedDrawsAgain(t *testing.T) {
	t.Parallel()
	done := func(_ context.Context, s Slot) *trajectory.Trajectory { return ended(s, trajectory.Completed, 1) }
	p := NewPipeline(testOptions(t, done), Counts{})
	p.Start(t.Context())
	groups, err := p.Take(t.Context(), 3, 3)
	if err != nil {
		t.Fatal(err)
	}
	resolved := map[int64]bool{}
	for _, g := range groups[:2] {
		p.Resolve(g, false)
		resolved[g.Draw.ID] = true
	}
	p.Stop()
	pos := p.Position()
	o := testOptions(t, done)
	if err := o.Mixer.Restore(pos.Mixer); err != nil {
		t.Fatal(err)
	}
	o.Requeue, o.Sync = pos.Draws, true
	q := NewPipeline(o, pos.Counts)
	q.Start(t.Context())
	defer q.Stop()
	n := int(pos.Mixer.Next)
	again, err := q.Take(t.Context(), n-2+1, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ids []int64
	for _, g := range again {
		ids = append(ids, g.Draw.ID)
	}
	for i := range int64(n + 1) {
		if slices.Contains(ids, i) == resolved[i] {
			t.Errorf("draw %d: resolved %v, played again %v", i, resolved[i], slices.Contains(ids, i))
		}
	}
}

func TestStopReleasesWaiters(t *testing.T) {
	t.Parallel()
	p := NewPipeline(testOptions(t, func(ctx context.Context, s Slot) *trajectory.Trajectory {
		<-ctx.Done()
		return ended(s, trajectory.Cancelled, 0)
	}), Counts{})
	p.Start(t.Context())
	result := make(chan error)
	go func() {
		_, err := p.Take(t.Context(), 1, 0)
		result <- err
	}()
	p.Stop()
	p.Stop()
	if err := <-result; err != ErrStopped {
		t.Errorf("Take returned %v", err)
	}
}

func TestQuarantine(t *testing.T) {
	t.Parallel()
	m, err := NewMixer([]MixTask{{Task: "a", Weight: 1, Samples: 2}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	o := testOptions(t, func(_ context.Context, s Slot) *trajectory.Trajectory {
		if s.Draw.Sample == 0 {
			return ended(s, trajectory.TaskError, 0)
		}
		return ended(s, trajectory.Completed, 1)
	})
	o.Mixer, o.Sync, o.Retries = m, true, 1
	p := NewPipeline(o, Counts{})
	p.Start(t.Context())
	defer p.Stop()
	for range 12 {
		groups, err := p.Take(t.Context(), 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		p.Resolve(groups[0], false)
	}
	if q := p.Quarantined(); len(q) != 1 || q[0].Sample != 0 {
		t.Errorf("quarantined %+v", q)
	}
}
