package env_test

import (
	"context"
	"strings"
	"testing"

	"agentrl/internal/env"
	"agentrl/internal/errs"
	"agentrl/internal/trajectory"
)

type fakeEnv struct{ task string }

type fakeEpisode struct{ sample env.Sample }

func (f fakeEnv) Spec() env.Spec { return env.Spec{Task: f.task, Samples: 3} }
func (f fakeEnv) Start(_ context.Context, s env.Sample) (env.Episode, error) {
	return fakeEpisode{s}, nil
}
func (f fakeEpisode) Open() []trajectory.Message {
	return []trajectory.Message{{Role: trajectory.User, Content: f.sample.Task}}
}
func (f fakeEpisode) Step(context.Context, trajectory.Message) (env.Step, error) {
	return env.Step{Status: trajectory.Completed}, nil
}
func (f fakeEpisode) Close() error { return nil }

func TestLocal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	l, err := env.NewLocal(fakeEnv{"b"}, fakeEnv{"a"})
	if err != nil {
		t.Fatal(err)
	}
	specs, err := l.Specs(ctx)
	if err != nil || len(specs) != 2 || specs[0].Task != "a" || specs[1].Task != "b" {
		t.Fatalf("Specs = %v, %v", specs, err)
	}
	e, err := l.Start(ctx, env.Sample{Task: "b", Index: 2})
	if err != nil || e.Open()[0].Content != "b" {
		t.Fatalf("Start went to the wrong environment: %v, %v", e, err)
	}
	_, err = l.Start(ctx, env.Sample{Task: "c"})
	if errs.CodeOf(err) != errs.NotFound || !strings.Contains(err.Error(), "a, b") {
		t.Errorf("unknown task: %v", err)
	}
	for _, i := range []int64{-1, 3} {
		if _, err = l.Start(ctx, env.Sample{Task: "a", Index: i}); errs.CodeOf(err) != errs.Invalid {
			t.Errorf("index %d: %v", i, err)
		}
	}
	if _, err = env.NewLocal(fakeEnv{"a"}, fakeEnv{"a"}); errs.CodeOf(err) != errs.Conflict {
		t.Errorf("a task served twice: %v", err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err = l.Start(done, env.Sample{Task: "a"}); err != context.Canceled {
		t.Errorf("cancelled start: %v", err)
	}
}
