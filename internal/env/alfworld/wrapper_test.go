package alfworld

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"testing"

	"agentrl/internal/env"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/trajectory"
)

func confLevel(level int) experiment.ALFWorld { return experiment.ALFWorld{Level: level} }

func sampleOf(task string, i int64) env.Sample { return env.Sample{Task: task, Index: i} }

func call(name, args string) trajectory.Message {
	return trajectory.Message{Role: trajectory.Assistant, ToolCalls: []trajectory.ToolCall{{ID: "c1", Name: name, Arguments: args}}}
}

func act(command string) trajectory.Message { return callFor("c1", command) }

// benchmarkEpisode plays the miniature game in the benchmark profile: three commands win.
func benchmarkEpisode(t *testing.T, compat bool) *episode {
	t.Helper()
	p := mini{facts: miniWorld, wording: Legacy}.start(t)
	e := startGame(p.g, experiment.ALFWorld{Profile: Benchmark, Compat: compat}, benchmarkTurns)
	e.lock = &sync.Mutex{}
	return e
}

var winning = []string{"go to desk 1", "take mug 1 from desk 1", "put mug 1 in/on shelf 1"}

func play(t *testing.T, e *episode, ms ...trajectory.Message) env.Step {
	t.Helper()
	var s env.Step
	for i, m := range ms {
		var err error
		if s, err = e.Step(context.Background(), m); err != nil {
			t.Fatal(err)
		}
		if s.Status != trajectory.Running && i < len(ms)-1 {
			t.Fatalf("ended with %q at message %d of %d", s.Status, i+1, len(ms))
		}
	}
	return s
}

func commands(list ...string) []trajectory.Message {
	var out []trajectory.Message
	for _, c := range list {
		out = append(out, act(c))
	}
	return out
}

func TestBenchmarkProtocol(t *testing.T) {
	t.Parallel()
	e := benchmarkEpisode(t, false)
	open := e.Open()
	if len(open) != 2 || open[0].Role != trajectory.System || open[1].Role != trajectory.User {
		t.Fatalf("opening %v", open)
	}
	want := "Here is your task. You are in the middle of a room. Looking quickly around you, you see a desk 1, a drawer 1, a fridge 1, " +
		"a microwave 1, a shelf 1, and a sinkbasin 1.\nYour task is to: put a mug in shelf. AVAILABLE ACTIONS: go to desk 1\ngo to drawer 1\n" +
		"go to fridge 1\ngo to microwave 1\ngo to shelf 1\ngo to sinkbasin 1\ninventory\nlook\n"
	if open[1].Content != want {
		t.Errorf("first message %q, want %q", open[1].Content, want)
	}
	s := play(t, e, act("go to drawer"))
	want = "The drawer 1 is closed. AVAILABLE ACTIONS: examine drawer 1\ngo to desk 1\ngo to fridge 1\ngo to microwave 1\ngo to shelf 1\n" +
		"go to sinkbasin 1\ninventory\nlook\nopen drawer 1\n"
	if len(s.Messages) != 1 || s.Messages[0].Content != want || s.Messages[0].ToolCallID != "c1" || s.Messages[0].Role != trajectory.ToolRole {
		t.Errorf("reply %+v, want %q", s.Messages, want)
	}
	s = play(t, e, commands(winning...)...)
	if s.Status != trajectory.Completed || s.Reward != 1 || s.Metrics["score"] != 1 || s.Metrics["score_upstream"] != 1 {
		t.Errorf("the win is %+v", s)
	}
	if _, err := e.Step(context.Background(), act("look")); errs.CodeOf(err) != errs.Conflict {
		t.Errorf("a step after the end: %v", err)
	}
}

// TestStatuses has the rows of env-alfworld.md 6 and 7.2 in both modes.
func TestStatuses(t *testing.T) {
	t.Parallel()
	none := trajectory.Message{Role: trajectory.Assistant, Content: "I think."}
	looks := func(n int) []trajectory.Message {
		return commands(strings.Split(strings.Repeat("look,", n), ",")[:n]...)
	}
	distinct := func(n int) []trajectory.Message {
		var out []trajectory.Message
		for i := range n {
			out = append(out, act([]string{"look", "inventory"}[i%2]))
		}
		return out
	}
	join := func(lists ...[]trajectory.Message) []trajectory.Message {
		var out []trajectory.Message
		for _, l := range lists {
			out = append(out, l...)
		}
		return out
	}
	one := func(m trajectory.Message) []trajectory.Message { return []trajectory.Message{m} }
	win := commands(winning...)
	type result struct {
		status trajectory.Status
		reward float64
	}
	running, won := result{trajectory.Running, 0}, result{trajectory.Completed, 1}
	invalid, limit := result{trajectory.AgentInvalidAction, 0}, result{trajectory.TaskLimitReached, 0}
	for _, c := range []struct {
		name         string
		messages     []trajectory.Message
		ours, compat result
	}{
		{"valid step", commands("look"), running, running},
		{"invalid command", commands("dance"), running, running},
		{"won", win, won, won},
		{"no call", one(none), running, running},
		{"no call, then won (sticky_status)", join(one(none), win), won, result{trajectory.AgentValidationFailed, 1}},
		{"bad call, then won (sticky_status)", join(one(call(toolName, "{")), win), won, result{trajectory.AgentInvalidAction, 1}},
		{"three equal before four rounds", looks(3), running, running},
		{"four equal", looks(4), invalid, invalid},
		{"three equal after another", join(commands("inventory"), looks(3)), invalid, invalid},
		{"20 rounds", distinct(20), limit, limit},
		{"20 rounds without a call", []trajectory.Message{none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none, none}, limit, limit},
		{"other tool (any_tool_name), then won", join(one(call("act", `{"action":"go to desk 1"}`)), win[1:]), running, won},
		{"first value (first_value)", one(call(toolName, `{"thought":"look","action":"go to desk 1"}`)), running, running},
	} {
		for _, compat := range []bool{false, true} {
			want := c.ours
			if compat {
				want = c.compat
			}
			s := play(t, benchmarkEpisode(t, compat), c.messages...)
			if s.Status != want.status || s.Reward != want.reward {
				t.Errorf("%s (compat %v): %q with reward %v, want %q with %v", c.name, compat, s.Status, s.Reward, want.status, want.reward)
			}
			if s.Status != trajectory.Running && s.Metrics["score"] != want.reward {
				t.Errorf("%s (compat %v): score %v", c.name, compat, s.Metrics["score"])
			}
			if s.Status != trajectory.Running && s.Metrics["score_upstream"] != c.compat.reward && c.ours == c.compat {
				t.Errorf("%s (compat %v): upstream score %v", c.name, compat, s.Metrics["score_upstream"])
			}
		}
	}
}

func TestRepeatBeforeWin(t *testing.T) {
	t.Parallel()
	// the third "take mug" in a row wins, because the best match is a different command then
	run := func(compat bool) env.Step {
		p := mini{facts: miniWorld, goal: "(exists (?a - agent) (holdsany ?a))", wording: Legacy}.start(t)
		e := startGame(p.g, experiment.ALFWorld{Profile: Benchmark, Compat: compat}, benchmarkTurns)
		play(t, e, commands("go to desk 1")...)
		e.submitted = []string{"look", "take mug", "take mug"}
		return play(t, e, act("take mug"))
	}
	if s := run(false); s.Status != trajectory.Completed || s.Reward != 1 || s.Metrics["score_upstream"] != 0 {
		t.Errorf("by default the win counts: %+v", s)
	}
	if s := run(true); s.Status != trajectory.AgentInvalidAction || s.Reward != 0 {
		t.Errorf("upstream the repetition counts: %+v", s)
	}
}

func TestReplies(t *testing.T) {
	t.Parallel()
	two := trajectory.Message{Role: trajectory.Assistant, ToolCalls: []trajectory.ToolCall{
		{ID: "a", Name: toolName, Arguments: `{"action":"look"}`}, {ID: "b", Name: toolName, Arguments: `{"action":"inventory"}`}}}
	s := play(t, benchmarkEpisode(t, false), two)
	if len(s.Messages) != 2 || s.Messages[0].ToolCallID != "a" || s.Messages[1].ToolCallID != "b" || s.Messages[1].Content != oneCall {
		t.Errorf("orphan calls are not answered: %+v", s.Messages)
	}
	if s = play(t, benchmarkEpisode(t, true), two); len(s.Messages) != 1 {
		t.Errorf("upstream leaves the second call open: %+v", s.Messages)
	}
	for _, c := range []struct {
		args string
		want bool
	}{
		{`{`, false}, {``, false}, {`{}`, false}, {`[]`, false}, {`"look"`, false}, {`{"action":3}`, false}, {`{"action":null}`, false},
		{`{"action":"look"} x`, false}, {`{"a":"look","b":"look"}`, false}, {`{"action":{"x":1}}`, false},
		{`{"action":"look"}`, true}, {`{"command":"look"}`, true}, {`{"thought":"hm","action":"look"}`, true},
	} {
		s := play(t, benchmarkEpisode(t, false), call(toolName, c.args))
		ok := len(s.Messages) == 1 && s.Messages[0].Content != badCall
		if ok != c.want || s.Messages[0].Role != trajectory.ToolRole {
			t.Errorf("arguments %s: %+v", c.args, s.Messages)
		}
	}
	s = play(t, benchmarkEpisode(t, true), call(toolName, `{`))
	if s.Messages[0].Role != trajectory.User || s.Messages[0].Content != badCall {
		t.Errorf("upstream answers as the user: %+v", s.Messages)
	}
	s = play(t, benchmarkEpisode(t, false), trajectory.Message{Role: trajectory.Assistant, Content: "hm"})
	if len(s.Messages) != 1 || s.Messages[0].Role != trajectory.User || s.Messages[0].Content != noCall {
		t.Errorf("no call: %+v", s.Messages)
	}
	s = play(t, benchmarkEpisode(t, true), call("anything", `{"x":"go to desk 1","action":"look"}`))
	if !strings.HasPrefix(s.Messages[0].Content, "On the desk 1, you see") {
		t.Errorf("upstream takes the first value of any tool: %+v", s.Messages)
	}
	e := benchmarkEpisode(t, false)
	play(t, e, call(toolName, `{"command":"go to desk 1"}`))
	if s = play(t, e, commands(winning[1:]...)...); s.Metrics["argument_warnings"] != 1 {
		t.Errorf("a value under another key is not counted: %+v", s.Metrics)
	}
}

func TestNativeProfile(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	e, err := New(TaskTrain, experiment.ALFWorld{})
	if err != nil {
		t.Fatal(err)
	}
	spec := e.Spec()
	if spec.Task != TaskTrain || spec.Code != "AF" || spec.Samples != trainSamples || spec.TurnLimit != nativeTurns || len(spec.Tools) != 1 {
		t.Errorf("spec %+v", spec)
	}
	var schema struct {
		Required             []string
		AdditionalProperties bool
	}
	if err := json.Unmarshal(spec.Tools[0].Parameters, &schema); err != nil || !reflect.DeepEqual(schema.Required, []string{"action"}) {
		t.Errorf("schema %s: %v", spec.Tools[0].Parameters, err)
	}
	ep, err := e.Start(ctx, sampleOf(TaskTrain, 5))
	if err != nil {
		t.Fatal(err)
	}
	open := ep.Open()
	if len(open) != 1 || open[0].Role != trajectory.User || strings.Contains(open[0].Content, "AVAILABLE") ||
		!strings.HasPrefix(open[0].Content, "You are in the middle of a room.") || strings.Count(open[0].Content, "\n") != 1 {
		t.Errorf("opening %+v", open)
	}
	tool, all := ep.(env.Admissible).Admissible()
	if tool != toolName || len(all) < 7 {
		t.Errorf("admissible %s %q", tool, all)
	}
	s, err := ep.Step(ctx, act("LOOK\nplease"))
	if err != nil || !strings.HasPrefix(s.Messages[0].Content, "You are in the middle of a room.") || strings.Contains(s.Messages[0].Content, "AVAILABLE") {
		t.Errorf("step %+v, %v", s, err)
	}
	if s, err = ep.Step(ctx, act("go")); err != nil || s.Messages[0].Content != nothing || s.Reward != 0 {
		t.Errorf("exact matching: %+v, %v", s, err)
	}
	for range 2 {
		if err := ep.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := ep.Step(ctx, act("look")); errs.CodeOf(err) != errs.Conflict {
		t.Errorf("a step after Close: %v", err)
	}
	listed, err := New(TaskValid, experiment.ALFWorld{ListActions: true})
	if err != nil {
		t.Fatal(err)
	}
	ep, err = listed.Start(ctx, sampleOf(TaskValid, 9_999))
	if err != nil || !strings.Contains(ep.Open()[0].Content, " AVAILABLE ACTIONS: go to ") {
		t.Errorf("the actions are not listed: %v, %v", ep.Open(), err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for field, conf := range map[string]experiment.ALFWorld{
		"env.alfworld.profile": {Profile: "x"}, "env.alfworld.wording": {Wording: "x"}, "env.alfworld.match": {Match: "x"}, "env.alfworld.level": {Level: 9},
	} {
		_, err := New(TaskTrain, conf)
		if errs.CodeOf(err) != errs.Invalid || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), "allowed") {
			t.Errorf("%+v: %v", conf, err)
		}
	}
	if _, err := New("alfworld-dev", experiment.ALFWorld{}); errs.CodeOf(err) != errs.Invalid || !strings.Contains(err.Error(), TaskValid) {
		t.Errorf("unknown task: %v", err)
	}
	all, err := Tasks(experiment.ALFWorld{})
	if err != nil || len(all) != 3 {
		t.Fatalf("tasks %v, %v", all, err)
	}
	for _, e := range all {
		for _, i := range []int64{-1, e.Spec().Samples} {
			if _, err := e.Start(ctx, sampleOf(e.Spec().Task, i)); errs.CodeOf(err) != errs.Invalid {
				t.Errorf("%s sample %d: %v", e.Spec().Task, i, err)
			}
		}
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := all[0].Start(done, sampleOf(TaskTrain, 0)); err != context.Canceled {
		t.Errorf("cancelled start: %v", err)
	}
}

func TestEpisodesRunInParallel(t *testing.T) {
	t.Parallel()
	e, err := New(TaskTrain, experiment.ALFWorld{Level: 1, Compat: true})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range int64(16) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			ep, err := e.Start(context.Background(), sampleOf(TaskTrain, i%4))
			if err != nil {
				t.Error(err)
				return
			}
			if _, status, err := run(ep.(*episode), Privileged, 1, 0); err != nil || status != trajectory.Completed {
				t.Errorf("sample %d: %v, %v", i%4, status, err)
			}
		}()
	}
	wg.Wait()
}
