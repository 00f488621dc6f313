package experiment

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"agentrl/internal/errs"
)

// maxName is the longest name of a run in characters.
const maxName = 100

// sizes are the built-in models.
var sizes = [...]string{"pico", "nano", "micro", "mini"}

// Validate checks a configuration and returns every problem with the dotted path of its key, such as
// "tasks[0].weight", and what is allowed there. tasks are the names that can be played; nil leaves names unchecked.
func Validate(c Config, tasks []string) []*errs.Error {
	v := &validator{tasks: tasks}
	v.name("name", c.Name)
	v.mix(c.Tasks)
	v.policy(c)
	v.algorithm(c.Algorithm)
	v.sampling(c.Sampling)
	v.pipeline(c)
	v.warmup(c.Warmup)
	v.rest(c)
	return v.problems
}

func (v *validator) name(path, s string) {
	switch {
	case strings.TrimSpace(s) == "":
		v.add(path, "a name is missing")
	case !utf8.ValidString(s) || strings.ContainsFunc(s, Unprintable):
		v.add(path, "a name may hold printable characters only")
	case utf8.RuneCountInString(s) > maxName:
		v.add(path, "a name may have at most %d characters", maxName)
	}
}

func (v *validator) mix(mix []TaskMix) {
	if len(mix) == 0 {
		v.add("tasks", "at least one task is needed%s", v.allowedTasks())
		return
	}
	if len(mix) > 100 {
		v.add("tasks", "%d tasks are too many; at most 100 are allowed", len(mix))
		return
	}
	seen, sum := map[string]bool{}, 0.0
	for i, t := range mix {
		v.task(at("tasks", i, "task"), t.Task)
		if seen[t.Task] && t.Task != "" {
			v.add(at("tasks", i, "task"), "%q is listed twice; each task may appear once", t.Task)
		}
		seen[t.Task] = true
		v.number(at("tasks", i, "weight"), t.Weight, 0, 1e6)
		sum += t.Weight
	}
	if sum == 0 {
		v.add("tasks", "all weights are zero; at least one must be positive")
	}
}

func (v *validator) policy(c Config) {
	p := c.Policy
	if p.Engine != "native" {
		v.add("policy.engine", "%q is not allowed; allowed is native", p.Engine)
	}
	if !slices.Contains(sizes[:], p.Base) && !strings.ContainsAny(p.Base, `/\`) && !filepath.IsAbs(p.Base) {
		v.add("policy.base", "%q is not allowed; allowed are %s, or the path of a directory with a saved model", p.Base, strings.Join(sizes[:], ", "))
	}
	pool := p.Pool
	v.oneOf("policy.pool.mode", pool.Mode, "single", "mix", "cross")
	if len(pool.Members) == 0 {
		v.add("policy.pool.members", "at least one member is needed; allowed are current and stale")
		return
	}
	seen, sum, positive, trained := map[string]bool{}, 0.0, 0, false
	for i, m := range pool.Members {
		path := func(key string) string { return at("policy.pool.members", i, key) }
		v.oneOf(path("policy"), m.Policy, "current", "stale")
		if seen[m.Policy] {
			v.add(path("policy"), "%q is listed twice; each policy may appear once", m.Policy)
		}
		seen[m.Policy] = true
		v.number(path("weight"), m.Weight, 0, 1e6)
		sum += m.Weight
		if m.Weight > 0 {
			positive++
			trained = trained || m.Policy == "current"
		}
		switch {
		case m.Policy == "stale":
			v.whole(path("refresh_every"), m.RefreshEvery, 1, 1e6)
		case m.RefreshEvery != 0:
			v.add(path("refresh_every"), "only the stale member is refreshed; leave it out here")
		}
	}
	switch {
	case positive == 0:
		v.add("policy.pool.members", "all weights are zero; at least one must be positive")
		return
	case !trained:
		v.add("policy.pool.members", "the current policy needs a positive weight, or nothing new is ever tried")
	case pool.Mode == "single" && positive > 1:
		v.add("policy.pool.mode", "single takes one member of positive weight, got %d; use mix or cross for several", positive)
	case (pool.Mode == "mix" || pool.Mode == "cross") && positive < 2:
		v.add("policy.pool.mode", "%s needs at least two members of positive weight; use single for one", pool.Mode)
	}
	for i, m := range pool.Members {
		if m.Weight > 0 && sum > 0 && c.Pipeline.Concurrency > 0 && math.Round(m.Weight/sum*float64(c.Pipeline.Concurrency)) < 1 {
			v.add(at("policy.pool.members", i, "weight"), "its share of %d episodes in flight rounds to 0, so %s would hardly ever write; raise the weight or pipeline.concurrency",
				c.Pipeline.Concurrency, m.Policy)
		}
	}
}

func (v *validator) algorithm(a Algorithm) {
	v.oneOf("algorithm.estimator", a.Estimator, "grpo")
	if a.Estimator == "grpo" && a.GroupSize == 1 {
		v.add("algorithm.group_size", "1 is not allowed with grpo, which compares the members of a group; at least 2 is")
	} else {
		v.whole("algorithm.group_size", a.GroupSize, 2, 256)
	}
	v.oneOf("algorithm.task_norm.degenerate", a.TaskNorm.Degenerate, "include", "zero")
	v.number("algorithm.clip.low", a.Clip.Low, 0, 1)
	v.number("algorithm.clip.high", a.Clip.High, 0, 100)
	if a.Clip.Dual != 0 && !(a.Clip.Dual > 1 && a.Clip.Dual <= 1e6) {
		v.add("algorithm.clip.dual", "%v is not allowed; 0 switches it off, otherwise it must be above 1", a.Clip.Dual)
	}
	v.number("algorithm.kl.coef", a.KL.Coef, 0, 100)
	v.oneOf("algorithm.kl.kind", a.KL.Kind, "k3")
	v.number("algorithm.entropy_coef", a.EntropyCoef, 0, 10)
	v.oneOf("algorithm.loss_reduction", a.LossReduction, "token-mean", "seq-mean")
	v.whole("algorithm.max_refill", a.MaxRefill, 1, 100)
	v.number("algorithm.abnormal_reward", a.AbnormalReward, -10, 1)
	v.number("algorithm.learning_rate", a.LearningRate, 0, 1)
	v.oneOf("algorithm.lr_schedule", a.LRSchedule, "constant", "linear")
	v.whole("algorithm.warmup_steps", a.WarmupSteps, 0, 1e6)
	v.number("algorithm.weight_decay", a.WeightDecay, 0, 1)
	v.number("algorithm.grad_clip", a.GradClip, 0, 1e6)
	v.whole("algorithm.epochs", a.Epochs, 1, 100)
	v.whole("algorithm.minibatches", a.Minibatches, 1, 1000)
}

func (v *validator) sampling(s Sampling) {
	if !(s.Temperature > 0 && s.Temperature <= 10) {
		v.add("sampling.temperature", "%v is not allowed; a number above 0 and up to 10 is, since training needs the log-probs of what was drawn", s.Temperature)
	}
	v.number("sampling.top_p", s.TopP, 0, 1)
	v.whole("sampling.top_k", s.TopK, 0, 1<<20)
	if !(s.MinP >= 0 && s.MinP < 1) {
		v.add("sampling.min_p", "%v is not allowed; a number from 0 to below 1 is", s.MinP)
	}
	v.whole("sampling.max_new_tokens", s.MaxNewTokens, 1, 1<<16)
	v.whole("sampling.max_total_tokens", s.MaxTotalTokens, 16, 1<<17)
	v.whole("sampling.max_turns", s.MaxTurns, 1, 1000)
	if s.MaxNewTokens >= s.MaxTotalTokens && s.MaxTotalTokens >= 16 {
		v.add("sampling.max_new_tokens", "%d is not allowed; it must be below max_total_tokens, which is %d", s.MaxNewTokens, s.MaxTotalTokens)
	}
}

func (v *validator) warmup(w Warmup) {
	v.whole("warmup.demonstrations", w.Demonstrations, 0, 1e8)
	v.oneOf("warmup.expert", w.Expert, "searching", "privileged")
	if !(w.Epochs > 0 && w.Epochs <= 1000) {
		v.add("warmup.epochs", "%v is not allowed; a number above 0 and up to 1000 is", w.Epochs)
	}
	v.whole("warmup.batch_tokens", w.BatchTokens, 64, 1<<20)
	if !(w.LearningRate >= 0 && w.LearningRate <= 1) {
		v.add("warmup.learning_rate", "%v is not allowed; a number from 0 to 1 is", w.LearningRate)
	}
	v.number("warmup.observation_weight", w.ObservationWeight, 0, 1)
	v.number("warmup.inject_invalid", w.InjectInvalid, 0, 0.9)
}
