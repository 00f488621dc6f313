package rollout

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentrl/internal/chat"
	"agentrl/internal/engine"
	"agentrl/internal/env"
	"agentrl/internal/experiment"
	"agentrl/internal/policy"
	"agentrl/internal/tokenizer"
	"agentrl/internal/train/toy"
	"agentrl/internal/trajectory"
)

// stage is a player over the toy environment with scripted policies.
type stage struct {
	*Player
	env    *toy.Env
	eng    *fakeEngine
	format chat.Format
}

func newStage(t *testing.T, mode string) *stage {
	t.Helper()
	tok, err := tokenizer.Train(slices.Values([]string{"is it so? yes no"}), tokenizer.TrainOptions{VocabSize: 300, Special: chat.SpecialTokens()})
	if err != nil {
		t.Fatal(err)
	}
	e := &toy.Env{Task: "toy", Samples: 10, Turns: 5}
	gw, err := env.NewLocal(e)
	if err != nil {
		t.Fatal(err)
	}
	base, err := chat.New(chat.CompactName, tok)
	if err != nil {
		t.Fatal(err)
	}
	format, err := base.With(e.Spec().Tools)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := policy.NewPool(experiment.Pool{Mode: "cross", Members: []experiment.Member{{Policy: "current", Weight: 1}, {Policy: "stale", Weight: 1, RefreshEvery: 5}}}, 3)
	if err != nil {
		t.Fatal(err)
	}
	eng := &fakeEngine{}
	w := NewWeights(eng, mode)
	w.Track(2)
	w.Track(7)
	w.Set(map[string]engine.Version{"current": 7, "stale": 2})
	s := &stage{env: e, eng: eng, format: format}
	s.Player = &Player{Gateway: gw, Tokenizer: tok, Formats: map[string]chat.Format{"toy": format}, Pool: pool, Weights: w, Now: time.Now,
		RunID: 4, Attempt: 2, Seed: 1, Phase: "rl", Abnormal: -0.2, TurnTimeout: time.Minute, EpisodeTimeout: time.Hour,
		Sampling: experiment.Sampling{Temperature: 1, MaxNewTokens: 8, MaxTotalTokens: 200, MaxTurns: 4}}
	eng.write = s.says("no")
	return s
}

// says writes the call with the given answer.
func (s *stage) says(text string) func(context.Context, engine.Version, policy.Prompt, policy.Sampling) (policy.Completion, error) {
	return func(_ context.Context, v engine.Version, _ policy.Prompt, _ policy.Sampling) (policy.Completion, error) {
		ids := s.format.Assistant(CallMessage(toy.Tool, "text", text))
		lp := make([]float32, len(ids))
		for i := range lp {
			lp[i] = -0.5
		}
		return policy.Completion{IDs: ids, Logprobs: lp, Finish: trajectory.FinishStop, Version: int64(v), Digest: "d"}, nil
	}
}

func (s *stage) play(t *testing.T) *trajectory.Trajectory {
	return s.Play(t.Context(), Slot{Draw: Draw{ID: 3, Task: "toy", Sample: 1}, Member: 1})
}

func TestPlayRecordsEveryTurn(t *testing.T) {
	t.Parallel()
	s := newStage(t, SyncTurn)
	var prompts [][]int32
	no, yes := s.says("no"), s.says("yes")
	s.eng.write = func(ctx context.Context, v engine.Version, p policy.Prompt, o policy.Sampling) (policy.Completion, error) {
		prompts = append(prompts, slices.Clone(p.IDs))
		if len(prompts) == 3 {
			return yes(ctx, v, p, o)
		}
		return no(ctx, v, p, o)
	}
	tr := s.play(t)
	if tr.ID != "4-2-3-1" || tr.Status != trajectory.Completed || tr.Reward != 1 || !tr.Pass || len(tr.Turns) != 3 || tr.DispatchVersion != 7 {
		t.Fatalf("%+v", tr)
	}
	seeds := map[uint64]bool{}
	for i, u := range tr.Turns {
		if !slices.Equal(prompts[i], tr.Tokens[:u.TokenStart]) {
			t.Errorf("turn %d: the prompt is not what stands before the sampled tokens", i)
		}
		want := map[string]int64{"current": 7, "stale": 2}[u.PolicyID]
		if u.PolicyVersion != want || u.Letter == "" || !u.Trainable || u.WeightsDigest != "d" || u.Message.ToolCalls[0].Name != toy.Tool || u.StopToken == 0 {
			t.Errorf("turn %+v", u)
		}
		seeds[u.Sampling.Seed] = true
	}
	if len(seeds) != 3 {
		t.Error("turns share a seed")
	}
	for i, on := range tr.Mask() {
		if on != (tr.Logprobs[i] == -0.5) {
			t.Errorf("token %d: mask %v, log-prob %v", i, on, tr.Logprobs[i])
		}
	}
	if again := newStage(t, SyncTurn); again.play(t).Turns[0].Sampling.Seed != tr.Turns[0].Sampling.Seed {
		t.Error("the seed of a turn depends on more than its name")
	}
}

func TestPlayCaps(t *testing.T) {
	t.Parallel()
	s := newStage(t, SyncTurn)
	if tr := s.play(t); tr.Status != trajectory.TurnCap || tr.Reward != -0.2 || len(tr.Turns) != 4 {
		t.Errorf("turn cap: %s %v %d", tr.Status, tr.Reward, len(tr.Turns))
	}
	s.Sampling.MaxTurns = 5
	if tr := s.play(t); tr.Status != trajectory.TaskLimitReached || tr.Reward != -0.2 {
		t.Errorf("task limit: %s %v", tr.Status, tr.Reward)
	}
	s.Sampling.MaxTotalTokens = 40
	if tr := s.play(t); tr.Status != trajectory.LengthCap || len(tr.Tokens) > 40 || tr.Reward != -0.2 {
		t.Errorf("length cap: %s %d tokens", tr.Status, len(tr.Tokens))
	}
	s.Sampling.MaxTotalTokens = 1
	if tr := s.play(t); tr.Status != trajectory.LengthCap || len(tr.Turns) != 0 {
		t.Errorf("no room at all: %s", tr.Status)
	}
}

func TestPlayFailures(t *testing.T) {
	t.Parallel()
	s := newStage(t, SyncTurn)
	s.env.Fail = func(_ int64, turn int) error {
		if turn == 2 {
			return errFake
		}
		return nil
	}
	if tr := s.play(t); tr.Status != trajectory.TaskError || tr.Error != "broken" || tr.Reward != 0 || len(tr.Turns) != 2 {
		t.Errorf("step: %s %q", tr.Status, tr.Error)
	}
	s.env.Fail = func(_ int64, turn int) error { return errFake }
	if tr := s.play(t); tr.Status != trajectory.ControllerError {
		t.Errorf("start: %s", tr.Status)
	}
	s.env.Fail = func(int64, int) error { panic("oh") }
	if tr := s.play(t); tr.Status != trajectory.TaskError || !strings.Contains(tr.Error, "oh") {
		t.Errorf("panic: %s %q", tr.Status, tr.Error)
	}
	s.env.Fail = nil
	if tr := s.Play(t.Context(), Slot{Draw: Draw{Task: "other"}}); tr.Status != trajectory.ControllerError {
		t.Errorf("task: %s", tr.Status)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if tr := s.Play(ctx, Slot{Draw: Draw{Task: "toy"}}); tr.Status != trajectory.Cancelled {
		t.Errorf("cancelled: %s", tr.Status)
	}
}

func TestPlayAsksAFailingEngineAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, SyncTurn)
	var calls atomic.Int32
	yes := s.says("yes")
	s.eng.write = func(ctx context.Context, v engine.Version, p policy.Prompt, o policy.Sampling) (policy.Completion, error) {
		if calls.Add(1) < 3 {
			return policy.Completion{}, errors.New("out of memory")
		}
		return yes(ctx, v, p, o)
	}
	s.Backoff = []time.Duration{0, 0}
	if tr := s.play(t); tr.Status != trajectory.Completed || len(tr.Turns) != 1 {
		t.Errorf("%s %q", tr.Status, tr.Error)
	}
	calls.Store(-10)
	if tr := s.play(t); tr.Status != trajectory.EngineError || tr.Error != "out of memory" {
		t.Errorf("%s %q", tr.Status, tr.Error)
	}
	s.TurnTimeout = time.Nanosecond
	s.eng.write = func(ctx context.Context, _ engine.Version, _ policy.Prompt, _ policy.Sampling) (policy.Completion, error) {
		<-ctx.Done()
		return policy.Completion{}, ctx.Err()
	}
	if tr := s.play(t); tr.Status != trajectory.TurnTimeout {
		t.Errorf("turn timeout: %s", tr.Status)
	}
	s.TurnTimeout, s.EpisodeTimeout = time.Hour, time.Millisecond
	if tr := s.play(t); tr.Status != trajectory.TurnTimeout || !strings.Contains(tr.Error, "episode") {
		t.Errorf("episode timeout: %s %q", tr.Status, tr.Error)
	}
	s.EpisodeTimeout = time.Hour
	s.eng.write = func(context.Context, engine.Version, policy.Prompt, policy.Sampling) (policy.Completion, error) {
		return policy.Completion{IDs: []int32{1, 2}, Logprobs: []float32{0}}, nil
	}
	if tr := s.play(t); tr.Status != trajectory.EngineError {
		t.Errorf("wrong lengths: %s", tr.Status)
	}
}

func TestPlayRestartsTurnsOnNewWeights(t *testing.T) {
	t.Parallel()
	s := newStage(t, SyncRestart)
	yes := s.says("yes")
	begun := make(chan struct{}, 1)
	s.eng.write = func(ctx context.Context, v engine.Version, p policy.Prompt, o policy.Sampling) (policy.Completion, error) {
		if v == 7 || v == 2 {
			begun <- struct{}{}
			<-ctx.Done()
			return policy.Completion{}, ctx.Err()
		}
		return yes(ctx, v, p, o)
	}
	go func() {
		<-begun
		s.Weights.Track(8)
		s.Weights.Set(map[string]engine.Version{"current": 8, "stale": 8})
	}()
	if tr := s.play(t); tr.Status != trajectory.Completed || tr.Turns[0].PolicyVersion != 8 {
		t.Errorf("%s %+v", tr.Status, tr.Turns)
	}
}

func TestPlayBadOutputIsTheAgents(t *testing.T) {
	t.Parallel()
	s := newStage(t, SyncTurn)
	s.eng.write = func(context.Context, engine.Version, policy.Prompt, policy.Sampling) (policy.Completion, error) {
		return policy.Completion{IDs: []int32{0xff, 0xfe, 0xff}, Logprobs: []float32{-1, -1, -1}, Finish: trajectory.FinishLength}, nil
	}
	tr := s.play(t)
	if tr.Status.Class() != trajectory.ClassPolicy || tr.Error != "" {
		t.Errorf("%s %q", tr.Status, tr.Error)
	}
	s.eng.write = func(context.Context, engine.Version, policy.Prompt, policy.Sampling) (policy.Completion, error) {
		return policy.Completion{IDs: []int32{65}, Finish: trajectory.FinishLength}, nil
	}
	if tr := s.play(t); tr.ActionTokens() != 0 || tr.Turns[0].Trainable {
		t.Error("a turn without log-probs was made trainable")
	}
}
