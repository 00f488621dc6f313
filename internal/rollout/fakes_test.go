package rollout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentrl/internal/engine"
	"agentrl/internal/policy"
	"agentrl/internal/trajectory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeEngine hands out samplers that write what write says, and notes what was released.
type fakeEngine struct {
	mu       sync.Mutex
	released []engine.Version
	write    func(ctx context.Context, v engine.Version, p policy.Prompt, s policy.Sampling) (policy.Completion, error)
}

func (f *fakeEngine) Sampler(v engine.Version) (policy.Policy, error) { return fakePolicy{f, v}, nil }

func (f *fakeEngine) Release(v engine.Version) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.released = append(f.released, v)
	return nil
}

func (f *fakeEngine) gone() []engine.Version {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]engine.Version(nil), f.released...)
}

type fakePolicy struct {
	f *fakeEngine
	v engine.Version
}

func (p fakePolicy) ID() string     { return "fake" }
func (p fakePolicy) Version() int64 { return int64(p.v) }
func (p fakePolicy) Generate(ctx context.Context, q policy.Prompt, s policy.Sampling) (policy.Completion, error) {
	return p.f.write(ctx, p.v, q, s)
}

var errFake = errors.New("broken")

// ended makes a finished episode for pipeline tests.
func ended(s Slot, status trajectory.Status, reward float64) *trajectory.Trajectory {
	return &trajectory.Trajectory{ID: fmt.Sprint(s), Group: s.Draw.ID, Member: s.Member, Retry: s.Retry, Task: s.Draw.Task, Status: status, Reward: reward}
}

func testOptions(t *testing.T, play func(context.Context, Slot) *trajectory.Trajectory) PipelineOptions {
	t.Helper()
	m, err := NewMixer([]MixTask{{Task: "a", Weight: 1, Samples: 100}}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return PipelineOptions{Play: play, Mixer: m, GroupSize: 4, GroupMin: 2, Gate: 6, Concurrency: 8, QueueMax: 32, BufferMax: 16,
		Retries: 3, GroupTimeout: time.Hour, Now: time.Now}
}

// balance fails unless every trajectory is accounted for.
func balance(t *testing.T, p *Pipeline) {
	t.Helper()
	p.mu.Lock()
	in, settled := p.counts.In, p.counts.Settled()
	p.mu.Unlock()
	// Nothing moves between the two reads when all episodes are blocked or done; otherwise in flight only changes place.
	if s := p.Stats(); in-settled != int64(s.InFlight) {
		c := p.Counts()
		if c.In-c.Settled() != int64(p.Stats().InFlight) {
			t.Errorf("in %d, settled %d, in flight %d", in, settled, s.InFlight)
		}
	}
}
