package experiment

// Config is the run file: what the form edits, the API accepts and `agentrl train FILE` runs. A run's configuration is
// frozen when it is created.
type Config struct {
	Name       string     `yaml:"name" json:"name"`
	Seed       uint64     `yaml:"seed" json:"seed"`
	Tasks      []TaskMix  `yaml:"tasks" json:"tasks"`
	Policy     PolicyConf `yaml:"policy" json:"policy"`
	Algorithm  Algorithm  `yaml:"algorithm" json:"algorithm"`
	Sampling   Sampling   `yaml:"sampling" json:"sampling"`
	Pipeline   Pipeline   `yaml:"pipeline" json:"pipeline"`
	Warmup     Warmup     `yaml:"warmup" json:"warmup"`
	Budget     Budget     `yaml:"budget" json:"budget"`
	Eval       Eval       `yaml:"eval" json:"eval"`
	Checkpoint Checkpoint `yaml:"checkpoint" json:"checkpoint"`
	Env        EnvConf    `yaml:"env" json:"env"`
	Engine     EngineConf `yaml:"engine" json:"engine"`
	Worker     WorkerConf `yaml:"worker" json:"worker"`
}

// TaskMix gives a task its relative sampling frequency.
type TaskMix struct {
	Task   string  `yaml:"task" json:"task"`
	Weight float64 `yaml:"weight" json:"weight"`
}

// PolicyConf says what is trained and who writes the turns.
type PolicyConf struct {
	Engine string `yaml:"engine" json:"engine"` // native | tinker
	Base   string `yaml:"base" json:"base"`     // pico | nano | micro | mini | directory of safetensors
	Pool   Pool   `yaml:"pool" json:"pool"`
}

// Pool is a policy pool.
type Pool struct {
	Mode    string   `yaml:"mode" json:"mode"` // single | mix | cross
	Members []Member `yaml:"members" json:"members"`
}

// Member is one policy of a pool. RefreshEvery, in updates, is for the stale member only.
type Member struct {
	Policy       string  `yaml:"policy" json:"policy"` // current | stale
	Weight       float64 `yaml:"weight" json:"weight"`
	RefreshEvery int     `yaml:"refresh_every,omitempty" json:"refresh_every,omitempty"`
}

// Algorithm is method.md 2, 4, 5 and 7.
type Algorithm struct {
	Estimator         string   `yaml:"estimator" json:"estimator"` // grpo
	GroupSize         int      `yaml:"group_size" json:"group_size"`
	NormByStd         bool     `yaml:"norm_by_std" json:"norm_by_std"`
	TaskAdvantageNorm bool     `yaml:"task_advantage_norm" json:"task_advantage_norm"`
	TaskNorm          TaskNorm `yaml:"task_norm" json:"task_norm"`
	Clip              Clip     `yaml:"clip" json:"clip"`
	KL                KL       `yaml:"kl" json:"kl"`
	EntropyCoef       float64  `yaml:"entropy_coef" json:"entropy_coef"`
	LossReduction     string   `yaml:"loss_reduction" json:"loss_reduction"` // token-mean | seq-mean
	DynamicSampling   bool     `yaml:"dynamic_sampling" json:"dynamic_sampling"`
	MaxRefill         int      `yaml:"max_refill" json:"max_refill"`
	AbnormalReward    float64  `yaml:"abnormal_reward" json:"abnormal_reward"`
	LearningRate      float64  `yaml:"learning_rate" json:"learning_rate"`
	LRSchedule        string   `yaml:"lr_schedule" json:"lr_schedule"` // constant | linear
	WarmupSteps       int      `yaml:"warmup_steps" json:"warmup_steps"`
	WeightDecay       float64  `yaml:"weight_decay" json:"weight_decay"`
	GradClip          float64  `yaml:"grad_clip" json:"grad_clip"`
	Epochs            int      `yaml:"epochs" json:"epochs"`
	Minibatches       int      `yaml:"minibatches" json:"minibatches"`
}

// TaskNorm says what happens to all-equal groups: include | zero.
type TaskNorm struct {
	Degenerate string `yaml:"degenerate" json:"degenerate"`
}

// Clip bounds the importance ratio. Dual 0 is off.
type Clip struct {
	Low  float64 `yaml:"low" json:"low"`
	High float64 `yaml:"high" json:"high"`
	Dual float64 `yaml:"dual" json:"dual"`
}

// KL is the penalty against the frozen reference.
type KL struct {
	Coef float64 `yaml:"coef" json:"coef"`
	Kind string  `yaml:"kind" json:"kind"` // k3
}

// Sampling is how rollouts draw tokens and how long an episode may be. Lengths are tokens.
type Sampling struct {
	Temperature    float64 `yaml:"temperature" json:"temperature"`
	TopP           float64 `yaml:"top_p" json:"top_p"`
	TopK           int     `yaml:"top_k" json:"top_k"`
	MinP           float64 `yaml:"min_p" json:"min_p"`
	MaxNewTokens   int     `yaml:"max_new_tokens" json:"max_new_tokens"`
	MaxTotalTokens int     `yaml:"max_total_tokens" json:"max_total_tokens"`
	MaxTurns       int     `yaml:"max_turns" json:"max_turns"`
	Constrained    bool    `yaml:"constrained" json:"constrained"`
}

// Pipeline is method.md 6. Zero means the default that the comment gives.
type Pipeline struct {
	Mode             string   `yaml:"mode" json:"mode"` // async | sync
	BatchPrompts     int      `yaml:"batch_prompts" json:"batch_prompts"`
	BatchMin         int      `yaml:"batch_min" json:"batch_min"` // groups; 0: batch_prompts
	BatchMax         int      `yaml:"batch_max" json:"batch_max"` // groups; 0: all that is ready
	FirstBatchFactor float64  `yaml:"first_batch_factor" json:"first_batch_factor"`
	Concurrency      int      `yaml:"concurrency" json:"concurrency"` // trajectories in flight
	QueueMax         int      `yaml:"queue_max" json:"queue_max"`     // trajectories; 0: 2 batches
	BufferMax        int      `yaml:"buffer_max" json:"buffer_max"`   // trajectories; 0: 2 batches
	MaxStaleness     int      `yaml:"max_staleness" json:"max_staleness"`
	GroupMin         int      `yaml:"group_min" json:"group_min"` // 0: max(2, group_size/2)
	GroupTimeout     Duration `yaml:"group_timeout" json:"group_timeout"`
	TurnTimeout      Duration `yaml:"turn_timeout" json:"turn_timeout"`
	EpisodeTimeout   Duration `yaml:"episode_timeout" json:"episode_timeout"`
	WeightSync       string   `yaml:"weight_sync" json:"weight_sync"` // turn | restart_turn | drain
	Retries          int      `yaml:"retries" json:"retries"`         // attempts per slot
}

// Warmup is the supervised phase on expert trajectories. Demonstrations 0 skips it.
type Warmup struct {
	Demonstrations    int     `yaml:"demonstrations" json:"demonstrations"`
	Expert            string  `yaml:"expert" json:"expert"` // searching | privileged
	Epochs            float64 `yaml:"epochs" json:"epochs"`
	BatchTokens       int     `yaml:"batch_tokens" json:"batch_tokens"`
	LearningRate      float64 `yaml:"learning_rate" json:"learning_rate"`
	ObservationWeight float64 `yaml:"observation_weight" json:"observation_weight"` // loss weight of environment tokens
	InjectInvalid     float64 `yaml:"inject_invalid" json:"inject_invalid"`         // share of turns with an injected invalid action
}

// Budget ends a run. Either may be 0 for no bound, not both.
type Budget struct {
	Steps    int      `yaml:"steps" json:"steps"`
	WallTime Duration `yaml:"wall_time" json:"wall_time"` // RL phase
}

// Eval is the validation. It uses the current policy only.
type Eval struct {
	Tasks       []string `yaml:"tasks" json:"tasks"`
	Every       int      `yaml:"every" json:"every"` // updates; also before the first and after the last
	Samples     int      `yaml:"samples" json:"samples"`
	Attempts    int      `yaml:"attempts" json:"attempts"`
	Temperature float64  `yaml:"temperature" json:"temperature"` // 0: sampling.temperature
}

// Checkpoint says how often state is saved, in updates of the RL phase and in steps of the warm start alike.
type Checkpoint struct {
	Every int `yaml:"every" json:"every"`
	Keep  int `yaml:"keep" json:"keep"`
}

// EnvConf holds the options of the environments.
type EnvConf struct {
	ALFWorld ALFWorld `yaml:"alfworld" json:"alfworld"`
}

// ALFWorld is env-alfworld.md. Data is a folder of real games; empty generates games of the level.
type ALFWorld struct {
	Level       int    `yaml:"level" json:"level"`
	Profile     string `yaml:"profile" json:"profile"`           // native | benchmark
	Wording     string `yaml:"wording" json:"wording"`           // current | legacy
	ListActions bool   `yaml:"list_actions" json:"list_actions"` // print the admissible commands
	Match       string `yaml:"match" json:"match"`               // exact | bleu
	Compat      bool   `yaml:"compat" json:"compat"`             // all upstream defects
	Data        string `yaml:"data" json:"data"`
}

// EngineConf holds the options of the native engine. Zero means chosen by the machine.
type EngineConf struct {
	Threads          int   `yaml:"threads" json:"threads"`
	MemoryLimit      int64 `yaml:"memory_limit" json:"memory_limit"` // bytes
	MicroBatchTokens int   `yaml:"micro_batch_tokens" json:"micro_batch_tokens"`
	VocabSize        int   `yaml:"vocab_size" json:"vocab_size"`
}

// WorkerConf says which workers may take the run.
type WorkerConf struct {
	Queue string `yaml:"queue" json:"queue"`
}
