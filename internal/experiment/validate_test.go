package experiment

import (
	"math"
	"strings"
	"testing"
	"time"
)

func valid() Config {
	c := Defaults()
	c.Name = "x"
	c.Tasks = []TaskMix{{"a", 1}}
	return c
}

func TestValidate(t *testing.T) {
	t.Parallel()
	if p := Validate(valid(), []string{"a"}); len(p) > 0 {
		t.Fatalf("the defaults are refused: %v", p)
	}
	tests := []struct {
		field, want string
		change      func(*Config)
	}{
		{"name", "missing", func(c *Config) { c.Name = " " }},
		{"name", "at most", func(c *Config) { c.Name = strings.Repeat("x", 101) }},
		{"name", "printable", func(c *Config) { c.Name = "a\x00" }},
		{"tasks", "at least one", func(c *Config) { c.Tasks = nil }},
		{"tasks", "all weights are zero", func(c *Config) { c.Tasks[0].Weight = 0 }},
		{"tasks[0].weight", "allowed", func(c *Config) { c.Tasks[0].Weight = math.NaN() }},
		{"tasks[1].task", "twice", func(c *Config) { c.Tasks = append(c.Tasks, c.Tasks[0]) }},
		{"tasks[0].task", "no task \"b\"; allowed are a", func(c *Config) { c.Tasks[0].Task = "b" }},
		{"policy.engine", "allowed is native", func(c *Config) { c.Policy.Engine = "gpu" }},
		{"policy.base", "pico, nano, micro, mini", func(c *Config) { c.Policy.Base = "huge" }},
		{"policy.pool.members[1].weight", "rounds to 0", func(c *Config) { c.Policy.Pool.Members[1].Weight = 0.001 }},
		{"policy.pool.members", "all weights", func(c *Config) { c.Policy.Pool.Members[0].Weight, c.Policy.Pool.Members[1].Weight = 0, 0 }},
		{"policy.pool.members", "current policy", func(c *Config) { c.Policy.Pool.Members[0].Weight = 0 }},
		{"policy.pool.mode", "single takes one", func(c *Config) { c.Policy.Pool.Mode = "single" }},
		{"policy.pool.mode", "at least two", func(c *Config) { c.Policy.Pool.Members = c.Policy.Pool.Members[:1] }},
		{"policy.pool.members[1].refresh_every", "1 to", func(c *Config) { c.Policy.Pool.Members[1].RefreshEvery = 0 }},
		{"algorithm.group_size", "at least 2", func(c *Config) { c.Algorithm.GroupSize = 1 }},
		{"algorithm.clip.dual", "above 1", func(c *Config) { c.Algorithm.Clip.Dual = 0.5 }},
		{"algorithm.learning_rate", "0 to 1", func(c *Config) { c.Algorithm.LearningRate = -1 }},
		{"sampling.temperature", "above 0", func(c *Config) { c.Sampling.Temperature = 0 }},
		{"sampling.max_new_tokens", "below max_total_tokens", func(c *Config) { c.Sampling.MaxNewTokens = 512 }},
		{"pipeline.mode", "async, sync", func(c *Config) { c.Pipeline.Mode = "lazy" }},
		{"pipeline.batch_prompts", "1 to", func(c *Config) { c.Pipeline.BatchPrompts = 0 }},
		{"pipeline.buffer_max", "must fit", func(c *Config) { c.Pipeline.BufferMax = 10 }},
		{"pipeline.max_staleness", "may be under way", func(c *Config) { c.Pipeline.MaxStaleness = 0 }},
		{"pipeline.group_min", "group of one", func(c *Config) { c.Pipeline.GroupMin = 1 }},
		{"pipeline.group_min", "may not exceed", func(c *Config) { c.Pipeline.GroupMin = 9 }},
		{"pipeline.turn_timeout", "above zero", func(c *Config) { c.Pipeline.TurnTimeout = 0 }},
		{"warmup.inject_invalid", "0 to 0.9", func(c *Config) { c.Warmup.InjectInvalid = 1 }},
		{"budget.steps", "never end", func(c *Config) { c.Budget.Steps = 0 }},
		{"eval.tasks[0]", "no task", func(c *Config) { c.Eval.Tasks = []string{"z"} }},
		{"eval.samples", "1 to", func(c *Config) { c.Eval.Tasks, c.Eval.Samples = []string{"a"}, 0 }},
		{"checkpoint.every", "1 to", func(c *Config) { c.Checkpoint.Every = 0 }},
		{"env.alfworld.level", "0 to 4", func(c *Config) { c.Env.ALFWorld.Level = 5 }},
		{"engine.vocab_size", "300 to", func(c *Config) { c.Engine.VocabSize = 10 }},
		{"worker.queue", "missing", func(c *Config) { c.Worker.Queue = "" }},
	}
	for _, tt := range tests {
		c := valid()
		tt.change(&c)
		found := false
		for _, p := range Validate(c, []string{"a"}) {
			found = found || p.Field == tt.field && strings.Contains(p.Message, tt.want)
		}
		if !found {
			t.Errorf("no problem at %s with %q: %v", tt.field, tt.want, Validate(c, []string{"a"}))
		}
	}
	c := valid()
	c.Budget = Budget{WallTime: Duration(time.Minute)}
	if p := Validate(c, nil); len(p) > 0 {
		t.Errorf("a budget of time alone is refused: %v", p)
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	for _, s := range States() {
		if s.Ended() == s.Stoppable() {
			t.Errorf("%s: a run either has ended or can be stopped", s)
		}
		if s.CanBecome(s) {
			t.Errorf("%s becomes itself", s)
		}
		if s.Resumable() != (s.Ended() && s.CanBecome(Queued)) {
			t.Errorf("%s: resumable %v", s, s.Resumable())
		}
	}
	if !Queued.CanBecome(Running) || Finished.CanBecome(Queued) || State("x").CanBecome(Running) {
		t.Error("wrong transitions")
	}
}
