package experiment

import "time"

// Defaults returns the configuration that a run file without keys would have, except that it names no tasks: those
// every run must choose.
func Defaults() Config {
	return Config{
		Seed: 1,
		Policy: PolicyConf{Engine: "native", Base: "pico", Pool: Pool{Mode: "cross", Members: []Member{
			{Policy: "current", Weight: 0.75},
			{Policy: "stale", Weight: 0.25, RefreshEvery: 25},
		}}},
		Algorithm: Algorithm{
			Estimator:         "grpo",
			GroupSize:         8,
			NormByStd:         true,
			TaskAdvantageNorm: true,
			TaskNorm:          TaskNorm{Degenerate: "include"},
			Clip:              Clip{Low: 0.2, High: 0.2, Dual: 3},
			KL:                KL{Kind: "k3"},
			LossReduction:     "token-mean",
			MaxRefill:         3,
			AbnormalReward:    -0.2,
			LearningRate:      2e-4,
			LRSchedule:        "constant",
			GradClip:          1,
			Epochs:            1,
			Minibatches:       1,
		},
		Sampling: Sampling{Temperature: 1, TopP: 1, MaxNewTokens: 32, MaxTotalTokens: 512, MaxTurns: 10},
		Pipeline: Pipeline{
			Mode:             "async",
			BatchPrompts:     16,
			FirstBatchFactor: 1.7,
			Concurrency:      64,
			MaxStaleness:     4,
			GroupTimeout:     Duration(20 * time.Minute),
			TurnTimeout:      Duration(10 * time.Minute),
			EpisodeTimeout:   Duration(60 * time.Minute),
			WeightSync:       "turn",
			Retries:          3,
		},
		Warmup: Warmup{
			Expert:            "searching",
			Epochs:            1,
			BatchTokens:       4096,
			LearningRate:      3e-3,
			ObservationWeight: 0.05,
			InjectInvalid:     0.15,
		},
		Budget:     Budget{Steps: 300},
		Eval:       Eval{Every: 50, Samples: 128, Attempts: 1},
		Checkpoint: Checkpoint{Every: 25, Keep: 3},
		Env:        EnvConf{ALFWorld: ALFWorld{Profile: "native"}},
		Worker:     WorkerConf{Queue: "default"},
	}
}

// GroupMinimum returns the smallest group that is trained on: group_min, or max(2, group_size/2) when that is 0
// (method.md 6.1), and never more than the group size.
func (c Config) GroupMinimum() int {
	n := c.Pipeline.GroupMin
	if n == 0 {
		n = max(2, c.Algorithm.GroupSize/2)
	}
	return min(n, c.Algorithm.GroupSize)
}

// BatchTrajectories returns the nominal size of a batch in trajectories.
func (c Config) BatchTrajectories() int { return c.Pipeline.BatchPrompts * c.Algorithm.GroupSize }

// BatchMinimum returns how many groups must be ready to start an update.
func (c Config) BatchMinimum() int {
	if c.Pipeline.BatchMin > 0 {
		return c.Pipeline.BatchMin
	}
	return c.Pipeline.BatchPrompts
}

// QueueLimit returns the bound of the input queue in trajectories.
func (c Config) QueueLimit() int {
	if c.Pipeline.QueueMax > 0 {
		return c.Pipeline.QueueMax
	}
	return 2 * c.BatchTrajectories()
}

// BufferLimit returns the bound of the buffer in trajectories.
func (c Config) BufferLimit() int {
	if c.Pipeline.BufferMax > 0 {
		return c.Pipeline.BufferMax
	}
	return 2 * c.BatchTrajectories()
}
