package rl

import (
	"math"

	"agentrl/internal/trajectory"
)

// Judgement is what an episode's end means for training and for the pass rate (method.md 5).
type Judgement struct {
	Env      float64 // the environment's reward, clamped to [0, 1]
	Reward   float64 // what training uses
	Pass     bool    // the environment's reward equals 1
	Conflict bool    // solved, yet the status is the agent's fault; the reward is kept
	Clamped  bool    // the environment reported a value outside [0, 1]
	Excluded bool    // an infrastructure failure, or not ended: never trained on
}

// Judge applies the reward rules. abnormal replaces the reward of an episode that the agent ended abnormally, such as
// -0.2, unless the environment counts it as solved.
func Judge(status trajectory.Status, envReward, abnormal float64) Judgement {
	j := Judgement{Env: envReward}
	if math.IsNaN(envReward) {
		j.Env, j.Clamped = 0, true
	} else if envReward < 0 || envReward > 1 {
		j.Env, j.Clamped = math.Max(0, math.Min(1, envReward)), true
	}
	j.Pass, j.Reward = j.Env == 1, j.Env
	switch status.Class() {
	case trajectory.ClassPolicy:
		if j.Pass {
			j.Conflict = true
		} else {
			j.Reward = abnormal
		}
	case trajectory.ClassInfrastructure, trajectory.ClassRunning:
		j.Excluded, j.Pass, j.Reward = true, false, 0
	}
	return j
}
