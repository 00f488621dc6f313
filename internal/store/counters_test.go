package store_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/store"
)

// testCounters moves runs through their states from several sides at once; the maintained counters must end up equal to
// a count, and nobody may be stuck or refused for anything but the state.
func testCounters(t *testing.T, f fixture) {
	ctx := t.Context()
	var runs []int64
	for range 6 {
		runs = append(runs, f.newRun(t, "r").ID)
	}
	var wg sync.WaitGroup
	for seed := range uint64(6) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for range 25 {
				id := runs[rng.IntN(len(runs))]
				var err error
				switch rng.IntN(4) {
				case 0:
					var l experiment.Lease
					if _, l, err = f.Acquire(ctx, id, worker("w"), f.clock.now(), ttl); err == nil && rng.IntN(4) > 0 {
						out := []experiment.State{experiment.Stopped, experiment.Failed, experiment.Queued}[rng.IntN(3)]
						err = f.Release(ctx, l, experiment.Outcome{State: out}, f.clock.now())
					}
				case 1:
					err = f.RequestStop(ctx, id, []experiment.Signal{"stop", "cancel"}[rng.IntN(2)])
				case 2:
					err = f.Resume(ctx, id)
				case 3:
					f.clock.advance(ttl)
					_, err = f.Orphans(ctx, f.clock.now())
				}
				if err != nil && errs.CodeOf(err) != errs.Conflict && !errors.Is(err, experiment.ErrLeased) && !errors.Is(err, experiment.ErrFenced) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wantRuns, wantJobs := map[experiment.State]int64{}, map[experiment.JobState]int64{}
	for _, r := range got(f.ListRuns(ctx, store.RunFilter{}))(t).Runs {
		wantRuns[r.State]++
	}
	for _, id := range []experiment.JobState{experiment.JobPending, experiment.JobActive, experiment.JobDone, experiment.JobFailed, experiment.JobCancelled} {
		jobs := got(f.Jobs(ctx, []experiment.JobState{id}, 0))(t)
		if len(jobs) > 0 {
			wantJobs[id] = int64(len(jobs))
		}
	}
	if n := got(f.CountRuns(ctx))(t); !maps.Equal(n, wantRuns) {
		t.Errorf("runs %v, want %v", n, wantRuns)
	}
	if n := got(f.JobCounts(ctx))(t); !maps.Equal(n, wantJobs) {
		t.Errorf("jobs %v, want %v", n, wantJobs)
	}
	if open := wantJobs[experiment.JobPending] + wantJobs[experiment.JobActive]; open != wantRuns[experiment.Queued]+wantRuns[experiment.Running]+wantRuns[experiment.Stopping] {
		t.Errorf("%d open jobs for runs %v", open, wantRuns)
	}
}
