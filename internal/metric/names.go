package metric

// Names of the series that the training loop writes. A task's own series is the name with "/" and the task appended,
// e.g. "reward/mean/alfworld-train". Metrics that begin with "warmup/" count warm-start steps on x, all others
// optimizer steps of the RL phase.
const (
	RewardMean      = "reward/mean"
	RewardStd       = "reward/std"
	PassRate        = "pass_rate"
	EvalPass        = "eval/pass@1" // per task: eval/pass@1/<task>
	EvalLow         = "eval/low"    // 95 % bootstrap band of eval/pass@1
	EvalHigh        = "eval/high"
	Turns           = "turns/mean"
	EndStatePrefix  = "end/" // share of trajectories per end state: end/<EndState>
	StalenessMean   = "staleness/mean"
	StalenessMax    = "staleness/max"
	DroppedStale    = "pipeline/dropped_stale_tokens"
	GroupsEqual     = "groups/all_equal"
	GroupsWaiting   = "pipeline/groups_waiting"
	InFlight        = "pipeline/in_flight"
	SampledTokensPS = "throughput/sampled_tokens_per_s"
	TrainedTokensPS = "throughput/trained_tokens_per_s"
	TrajectoriesPS  = "throughput/trajectories_per_s"
	Loss            = "train/loss"
	KL              = "train/kl"
	Entropy         = "train/entropy"
	ClipFraction    = "train/clip_fraction"
	RatioMax        = "train/ratio_max"
	GradNorm        = "train/grad_norm"
	LearningRate    = "train/learning_rate"
	AdvMeanPrefix   = "adv/" // adv/{mean,std,min,max}/{before,after}/<task>
	DegenerateTok   = "adv/degenerate_tokens"
	DegenerateShift = "adv/degenerate_shift"
	LogprobDiffMax  = "train/logprob_diff_max" // sampler against trainer on the same version
	ResidentBytes   = "memory/resident_bytes"
	WarmupLoss      = "warmup/loss"
	WarmupAccuracy  = "warmup/accuracy"
	WarmupTokensPS  = "warmup/tokens_per_s"
	WarmupGradNorm  = "warmup/grad_norm"

	WarmupLearningRate = "warmup/learning_rate"
	StaleCopyMean      = "staleness/stale_copy_mean" // ages of the stale copy's tokens; staleness/* is the current policy's
	StaleCopyMax       = "staleness/stale_copy_max"
	StaleShare         = "staleness/stale_copy_share" // share of trained tokens that the stale copy wrote
	EvalReward         = "eval/reward"
	EvalPassK          = "eval/pass@" // eval/pass@<k> for k = 2, 4, ...
	EvalIncomplete     = "eval/incomplete"
	RatioMean          = "train/ratio_mean"
	LogprobDiffMean    = "train/logprob_diff_mean"
	TaskNormSkipped    = "adv/task_norm_skipped"
	BatchTrajectories  = "pipeline/batch_trajectories"
	Excluded           = "pipeline/excluded_trajectories"
	StepSeconds        = "throughput/step_s"
	WaitSeconds        = "throughput/wait_s" // of the step: waiting for rollouts
)
