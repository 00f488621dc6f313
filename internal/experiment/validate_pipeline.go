package experiment

import (
	"fmt"
	"unicode/utf8"
)

func (v *validator) pipeline(c Config) {
	p, n := c.Pipeline, c.Algorithm.GroupSize
	v.oneOf("pipeline.mode", p.Mode, "async", "sync")
	v.whole("pipeline.batch_prompts", p.BatchPrompts, 1, 1<<16)
	v.whole("pipeline.batch_min", p.BatchMin, 0, 1<<16)
	v.whole("pipeline.batch_max", p.BatchMax, 0, 1<<16)
	v.number("pipeline.first_batch_factor", p.FirstBatchFactor, 1, 100)
	v.whole("pipeline.concurrency", p.Concurrency, 1, 1<<16)
	v.whole("pipeline.queue_max", p.QueueMax, 0, 1<<24)
	v.whole("pipeline.buffer_max", p.BufferMax, 0, 1<<24)
	v.whole("pipeline.max_staleness", p.MaxStaleness, 0, 1000)
	v.whole("pipeline.group_min", p.GroupMin, 0, 256)
	v.positive("pipeline.group_timeout", p.GroupTimeout)
	v.positive("pipeline.turn_timeout", p.TurnTimeout)
	v.positive("pipeline.episode_timeout", p.EpisodeTimeout)
	v.oneOf("pipeline.weight_sync", p.WeightSync, "turn", "restart_turn", "drain")
	v.whole("pipeline.retries", p.Retries, 1, 100)
	if n < 2 || p.BatchPrompts < 1 {
		return
	}
	if p.GroupMin > n {
		v.add("pipeline.group_min", "%d is not allowed; it may not exceed algorithm.group_size, which is %d", p.GroupMin, n)
	}
	if p.GroupMin == 1 {
		v.add("pipeline.group_min", "1 is not allowed; a group of one has nothing to compare with; 0 is the default, otherwise at least 2")
	}
	if p.BatchMax > 0 && p.BatchMax < c.BatchMinimum() {
		v.add("pipeline.batch_max", "%d is not allowed; it may not be below the %d groups needed to start an update", p.BatchMax, c.BatchMinimum())
	}
	if p.QueueMax > 0 && p.QueueMax < n {
		v.add("pipeline.queue_max", "%d is not allowed; one group of %d trajectories must fit; 0 is two batches", p.QueueMax, n)
	}
	need := c.BatchMinimum() * n
	if first := int(float64(need) * p.FirstBatchFactor); p.Mode == "async" && first > need {
		need = first
	}
	if c.BufferLimit() < need {
		v.add("pipeline.buffer_max", "%d is not allowed; the %d trajectories that start an update must fit, first_batch_factor included", c.BufferLimit(), need)
	}
	if gate := (p.MaxStaleness + 1) * p.BatchPrompts; p.Mode == "async" && gate*n < need {
		v.add("pipeline.max_staleness", "%d is not allowed; at most (max_staleness + 1) * batch_prompts = %d groups may be under way, but %d are needed to start an update; raise it or lower first_batch_factor or batch_min",
			p.MaxStaleness, gate, (need+n-1)/n)
	}
}

func (v *validator) positive(path string, d Duration) {
	if d <= 0 {
		v.add(path, "%s is not allowed; a duration above zero such as 90s, 20m or 1h is", d)
	}
}

func (v *validator) rest(c Config) {
	b := c.Budget
	v.whole("budget.steps", b.Steps, 0, 1e8)
	if b.WallTime < 0 {
		v.add("budget.wall_time", "%s is negative; 0 is no bound", b.WallTime)
	}
	if b.Steps == 0 && b.WallTime == 0 {
		v.add("budget.steps", "0 steps without a wall_time would never end; give at least one of the two")
	}
	for i, t := range c.Eval.Tasks {
		path := fmt.Sprintf("eval.tasks[%d]", i)
		v.task(path, t)
		for _, o := range c.Eval.Tasks[:i] {
			if o == t && t != "" {
				v.add(path, "%q is listed twice", t)
				break
			}
		}
	}
	v.whole("eval.every", c.Eval.Every, 0, 1e8)
	if len(c.Eval.Tasks) > 0 {
		v.whole("eval.samples", c.Eval.Samples, 1, 1e6)
		v.whole("eval.attempts", c.Eval.Attempts, 1, 1000)
	}
	v.number("eval.temperature", c.Eval.Temperature, 0, 10)
	v.whole("checkpoint.every", c.Checkpoint.Every, 1, 1e8)
	v.whole("checkpoint.keep", c.Checkpoint.Keep, 1, 1000)
	a := c.Env.ALFWorld
	v.whole("env.alfworld.level", a.Level, 0, 4)
	v.oneOf("env.alfworld.profile", a.Profile, "native", "benchmark")
	if a.Wording != "" { // empty: the profile's own
		v.oneOf("env.alfworld.wording", a.Wording, "current", "legacy")
	}
	if a.Match != "" {
		v.oneOf("env.alfworld.match", a.Match, "exact", "bleu")
	}
	if !utf8.ValidString(a.Data) {
		v.add("env.alfworld.data", "the path is not valid UTF-8")
	}
	e := c.Engine
	v.whole("engine.threads", e.Threads, 0, 4096)
	if e.MemoryLimit != 0 && e.MemoryLimit < 64<<20 {
		v.add("engine.memory_limit", "%d bytes are not enough; 0 is chosen by the machine, otherwise at least %d", e.MemoryLimit, 64<<20)
	}
	if e.MicroBatchTokens != 0 {
		v.whole("engine.micro_batch_tokens", e.MicroBatchTokens, 16, 1<<20)
	}
	if e.VocabSize != 0 {
		v.whole("engine.vocab_size", e.VocabSize, 300, 1<<20)
	}
	v.name("worker.queue", c.Worker.Queue)
}
