package web

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"agentrl/internal/auth"
	"agentrl/internal/env"
	"agentrl/internal/experiment"
	"agentrl/internal/live"
	"agentrl/internal/metric"
	"agentrl/internal/redis"
	"agentrl/internal/runfile"
	"agentrl/internal/store"
	"agentrl/internal/trajectory"
)

// site is a server over a fresh SQLite store, in which a chosen user is signed in without a password.
type site struct {
	*store.Store
	srv    *Server
	http   *httptest.Server
	stream *live.Stream
	user   auth.User
	exp    experiment.Experiment
	enq    *recordingEnqueuer
	leases map[int64]experiment.Lease
}

type recordingEnqueuer struct{ runs []int64 }

func (e *recordingEnqueuer) Enqueue(_ context.Context, r experiment.Run) error {
	e.runs = append(e.runs, r.ID)
	return nil
}

type fixedTasks []string

func (f fixedTasks) Specs(context.Context) ([]env.Spec, error) {
	out := make([]env.Spec, 0, len(f))
	for _, t := range f {
		out = append(out, env.Spec{Task: t, Code: "AF", Samples: 1000, TurnLimit: 20})
	}
	return out, nil
}

// newSite opens the store and the server. role is that of the signed-in user.
func newSite(t testing.TB, role auth.Role) *site {
	t.Helper()
	ctx, quiet := t.Context(), slog.New(slog.DiscardHandler)
	st, err := store.Open(ctx, store.Options{URL: filepath.Join(t.TempDir(), "t.db")})
	check(t, err)
	t.Cleanup(func() { _ = st.Close() })
	rd, err := redis.Open(ctx, "", quiet)
	check(t, err)
	t.Cleanup(func() { _ = rd.Close() })
	hub, stream := live.NewHub(rd.Redis(), quiet), live.NewStream(rd.Redis(), quiet)
	check(t, hub.Start(context.WithoutCancel(ctx)))
	t.Cleanup(hub.Stop)
	check(t, stream.Start(context.WithoutCancel(ctx)))
	t.Cleanup(stream.Stop)
	svc, err := auth.NewService(st, auth.Options{})
	check(t, err)
	s := &site{Store: st, stream: stream, enq: &recordingEnqueuer{}, leases: map[int64]experiment.Lease{}}
	s.http = httptest.NewUnstartedServer(nil)
	base, err := url.Parse("http://" + s.http.Listener.Addr().String())
	check(t, err)
	s.srv, err = New(Options{Store: st, Auth: svc, Hub: hub, Publisher: stream, Enqueuer: s.enq, BaseURL: base, Version: "test",
		Tasks: fixedTasks{"alfworld-train", "alfworld-valid"}})
	check(t, err)
	s.user, err = st.CreateUser(ctx, auth.User{Email: "ada@example.org", Name: "Ada", Role: role, PasswordHash: "-"})
	check(t, err)
	s.srv.echo.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := requestOf(c)
			r.identified, r.user, r.role = true, s.user, s.user.Role
			return next(c)
		}
	})
	s.http.Config.Handler = s.srv
	s.http.Start()
	t.Cleanup(s.http.Close)
	t.Cleanup(func() { _ = s.srv.Shutdown(context.Background()) })
	s.exp, err = st.CreateExperiment(ctx, experiment.Experiment{Name: "Stale share", Description: "Does writing some turns with older weights help?", OwnerID: s.user.ID})
	check(t, err)
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// testConfig is the quickstart's shape with small numbers.
func testConfig(name string) experiment.Config {
	c := experiment.Defaults()
	c.Name = name
	c.Tasks = []experiment.TaskMix{{Task: "alfworld-train", Weight: 1}}
	c.Warmup.Demonstrations = 4000
	c.Eval.Tasks = []string{"alfworld-valid"}
	return c
}

// addRun makes a queued run.
func (s *site) addRun(t testing.TB, name string) experiment.Run {
	t.Helper()
	c := testConfig(name)
	r, err := s.CreateRun(t.Context(), experiment.Run{ExperimentID: s.exp.ID, Name: name, OwnerID: s.user.ID, State: experiment.Queued,
		Config: c, ConfigYAML: string(runfile.Format(c)), Queue: "default", Seed: c.Seed})
	check(t, err)
	return r
}

// addHistory executes a run on paper: warm start, steps of reinforcement learning, evaluations, rollouts and groups.
func (s *site) addHistory(t testing.TB, run experiment.Run, warm, steps int, end experiment.State) {
	t.Helper()
	ctx := t.Context()
	now := time.Now().Add(-time.Duration(steps+warm) * 2 * time.Second)
	w := experiment.Worker{ID: "cpu-1", Host: "node-a", PID: 4711, Queues: []string{"default"}, Slots: 1, Kernel: "avx2", CPUs: 2, Memory: 24 << 30, StartedAt: now, SeenAt: time.Now(), RunIDs: []int64{run.ID}}
	check(t, s.SaveWorker(ctx, w))
	_, lease, err := s.Acquire(ctx, run.ID, w, time.Now(), time.Hour)
	check(t, err)
	s.leases[run.ID] = lease
	check(t, s.SetStart(ctx, lease, 0, 0, "avx2"))
	rnd := rand.New(rand.NewPCG(uint64(run.ID), 7))
	at := func(n int) time.Time { return now.Add(time.Duration(n) * 2 * time.Second) }
	var pts []metric.Point
	for i := 1; i <= warm; i++ {
		pts = append(pts, metric.Point{Metric: metric.WarmupLoss, Step: int64(i), Time: at(i), Value: 3.2*math.Exp(-float64(i)/25) + 0.25 + 0.05*rnd.Float64()})
	}
	p := experiment.Progress{Phase: experiment.PhaseWarmup, WarmupStep: int64(warm), WarmupSteps: int64(warm), Steps: 300, Parameters: 221_184, EvalPass: -1, StepSeconds: 2.1}
	check(t, s.CommitStep(ctx, lease, experiment.StepCommit{Points: pts, Progress: p}))
	if steps == 0 {
		return
	}
	p.Phase = experiment.PhaseRL
	draw := int64(0)
	for i := 1; i <= steps; i++ {
		var c experiment.StepCommit
		pass := 0.42 + 0.42*(1-math.Exp(-float64(i)/90)) + 0.06*(rnd.Float64()-0.5)
		add := func(name string, v float64) {
			c.Points = append(c.Points, metric.Point{Metric: name, Step: int64(i), Time: at(warm + i), Tokens: int64(i) * 9000, Samples: int64(i) * 64, Value: v})
		}
		for _, suffix := range []string{"", "/alfworld-train"} {
			add(metric.PassRate+suffix, pass)
			add(metric.RewardMean+suffix, pass-0.2*(1-pass))
		}
		add(metric.RewardStd, 0.45+0.05*rnd.Float64())
		add(metric.StalenessMean, 0.4+0.5*rnd.Float64())
		add(metric.StalenessMax, float64(rnd.IntN(5)))
		add(metric.DroppedStale, float64(rnd.IntN(40)))
		add(metric.GroupsEqual, 0.2+0.3*pass)
		add(metric.SampledTokensPS, 1800+200*rnd.Float64())
		add(metric.TrainedTokensPS, 4000+400*rnd.Float64())
		add(metric.Entropy, 0.9*math.Exp(-float64(i)/200)+0.05*rnd.Float64())
		add(metric.GradNorm, 0.5+0.3*rnd.Float64())
		add(metric.Turns, 7-2*pass)
		add(metric.ClipFraction, 0.02+0.02*rnd.Float64())
		rest := 1 - pass
		for _, e := range []struct {
			s trajectory.EndState
			v float64
		}{{trajectory.EndCompleted, pass}, {trajectory.EndTaskLimit, rest * 0.6}, {trajectory.EndContextLimit, rest * 0.1}, {trajectory.EndValidationFailed, rest * 0.1}, {trajectory.EndInvalidAction, rest * 0.2}, {trajectory.EndInfrastructure, 0}} {
			add(metric.EndStatePrefix+string(e.s), e.v)
		}
		if i == 1 || i%50 == 0 {
			for _, suffix := range []string{"", "/alfworld-valid"} {
				add(metric.EvalPass+suffix, pass-0.02)
				add(metric.EvalLow+suffix, pass-0.08)
				add(metric.EvalHigh+suffix, pass+0.04)
			}
			p.EvalPass = pass - 0.02
		}
		if i > steps-3 {
			for g := range 4 {
				draw++
				c.Groups = append(c.Groups, s.group(&c, run.ID, int64(i), draw, g, pass, rnd, at(warm+i)))
			}
		}
		p.Step, p.RewardMean, p.PassRate = int64(i), pass-0.2*(1-pass), pass
		p.Trajectories, p.Tokens = int64(i)*64, int64(i)*9000
		c.Progress = p
		check(t, s.CommitStep(ctx, lease, c))
	}
	for _, e := range []experiment.Event{
		{Level: "info", Kind: "started", Message: "attempt 1 began on cpu-1 with kernel avx2"},
		{Level: "info", Kind: "eval", Message: "pass@1 0.74 over 128 samples of alfworld-valid"},
		{Level: "warn", Kind: "stale", Message: "38 tokens were older than 4 updates and were not trained on"},
		{Level: "error", Kind: "env", Message: "a game could not be started: <script>alert(1)</script> \u202egpj.exe"},
	} {
		e.RunID, e.Attempt, e.At = run.ID, 1, time.Now()
		check(t, s.AddEvent(ctx, lease, e))
	}
	check(t, s.AddCheckpoint(ctx, lease, experiment.CheckpointInfo{RunID: run.ID, Attempt: 1, Step: int64(steps), WarmupStep: int64(warm), Dir: fmt.Sprintf("runs/%d/checkpoints/%06d", run.ID, steps), Bytes: 3 << 20, CreatedAt: time.Now()}))
	if end != experiment.Running {
		check(t, s.Release(ctx, lease, experiment.Outcome{State: end}, time.Now()))
	}
}

// release ends the attempt that addHistory began.
func (s *site) release(t testing.TB, run int64, end experiment.State) {
	t.Helper()
	check(t, s.Release(t.Context(), s.leases[run], experiment.Outcome{State: end}, time.Now()))
}

// group plays the members of one draw.
func (s *site) group(c *experiment.StepCommit, run, step, draw int64, g int, pass float64, rnd *rand.Rand, at time.Time) experiment.Group {
	out := experiment.Group{RunID: run, Attempt: 1, Step: step, Draw: draw, Task: "alfworld-train", Sample: 10_000 + draw*37, Size: 8, AgeSeconds: 3 + 4*rnd.Float64(), Staleness: int64(rnd.IntN(4))}
	for m := range 8 {
		t := testEpisode(run, step, draw, m, rnd, at, g != 0 && rnd.Float64() < pass)
		t.Sample = out.Sample
		c.Trajectories = append(c.Trajectories, t)
		out.Rewards = append(out.Rewards, t.Reward)
		out.Members = append(out.Members, t.ID)
		out.Letters = append(out.Letters, t.Letters())
		out.Mean += t.Reward / 8
		if t.Pass {
			out.Passes++
		}
	}
	for _, r := range out.Rewards {
		out.Spread += (r - out.Mean) * (r - out.Mean) / 7
	}
	out.Spread = math.Sqrt(out.Spread)
	out.AllEqual = out.Spread == 0
	return out
}

// testEpisode is a short game with hostile text in it.
func testEpisode(run, step, draw int64, member int, rnd *rand.Rand, at time.Time, pass bool) *trajectory.Trajectory {
	t := &trajectory.Trajectory{ID: trajectory.MakeID(run, 1, "rl", draw, member, 0), RunID: run, Attempt: 1, Step: step, Phase: "rl", Group: draw, Member: member,
		Task: "alfworld-train", Status: trajectory.Completed, Trained: true, EnvReward: 1, Reward: 1, Pass: pass, AdvantageGroup: 0.66, Advantage: 0.71,
		DispatchVersion: step - 1, Staleness: 1, StartedAt: at, EndedAt: at.Add(9 * time.Second),
		Tools: []trajectory.Tool{{Name: "act", Description: "Do one action in the room.", Parameters: []byte(`{"type":"object","properties":{"action":{"type":"string"}},"required":["action"]}`)}},
		Open: []trajectory.Message{{Role: trajectory.System, Content: "You act in a household. Answer with one call of the tool."},
			{Role: trajectory.User, Content: "You are in the middle of a room. Looking quickly around you, you see a drawer 1, a shelf 2 and a sinkbasin 1.\n\nYour task is to: put a clean mug in the shelf.\n<img src=x onerror=alert(1)> \u202eevil\u202c \x1b[31m"}}}
	if !pass {
		t.Status, t.Reward, t.EnvReward, t.AdvantageGroup, t.Advantage = trajectory.TaskLimitReached, -0.2, 0, -0.8, -0.92
	}
	moves := []struct{ act, obs string }{
		{"go to drawer 1", "You arrive at drawer 1. The drawer 1 is closed."}, {"open drawer 1", "You open the drawer 1. In it, you see a mug 2."},
		{"take mug 2 from drawer 1", "You pick up the mug 2 from the drawer 1."}, {"go to sinkbasin 1", "You arrive at sinkbasin 1. On it, you see nothing."},
		{"clean mug 2 with sinkbasin 1", "You clean the mug 2 using the sinkbasin 1."}, {"move mug 2 to shelf 2", "You move the mug 2 to the shelf 2."},
	}
	add := func(n int, sampled bool) {
		for range n {
			lp := float32(0)
			if sampled {
				lp = -float32(rnd.ExpFloat64() * 0.5)
			}
			t.Tokens, t.Logprobs, t.TrainLogprobs = append(t.Tokens, int32(rnd.IntN(1024))), append(t.Logprobs, lp), append(t.TrainLogprobs, lp*1.02)
		}
	}
	add(40, false)
	for i, mv := range moves {
		letter, id := "C", "current"
		if rnd.Float64() < 0.25 {
			letter, id = "S", "stale"
		}
		u := trajectory.Turn{Index: i, PolicyID: id, Letter: letter, PolicyVersion: step - 1, TokenStart: len(t.Tokens), Trainable: true, Finish: trajectory.FinishStop,
			Sampling: trajectory.Sampling{Temperature: 1, MaxNewTokens: 32}, RawText: "<tool_call>act(" + mv.act + ")", StartedAt: at, EndedAt: at.Add(310 * time.Millisecond), EnvLatency: 120 * time.Microsecond, PromptTokens: len(t.Tokens), CachedTokens: len(t.Tokens) - 4,
			Message: trajectory.Message{Role: trajectory.Assistant, ToolCalls: []trajectory.ToolCall{{ID: fmt.Sprint(i), Name: "act", Arguments: `{"action":"` + mv.act + `"}`}}},
			Replies: []trajectory.Message{{Role: trajectory.ToolRole, Content: mv.obs, ToolCallID: fmt.Sprint(i)}}}
		add(7, true)
		u.TokenEnd = len(t.Tokens)
		add(12, false)
		if pass && i == len(moves)-1 {
			u.Reward = 1
		}
		t.Turns = append(t.Turns, u)
	}
	return t
}

// get asks for a page and returns status and body.
func (s *site) get(t testing.TB, path string) (int, string) {
	t.Helper()
	w := httptest.NewRecorder()
	s.srv.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

// post sends a form from the site's own origin.
func (s *site) post(t testing.TB, path string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(form.Encode()))
	q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	q.Header.Set("Sec-Fetch-Site", "same-origin")
	w := httptest.NewRecorder()
	s.srv.ServeHTTP(w, q)
	return w
}
