package templates

import (
	"strings"

	"agentrl/internal/experiment"
)

// States lists the states of a run in the order of filters.
func States() []experiment.State {
	return []experiment.State{experiment.Running, experiment.Queued, experiment.Stopping, experiment.Stopped,
		experiment.Finished, experiment.Failed, experiment.Cancelled}
}

// runsFacts says in one line how many runs there are, by state.
func runsFacts(v RunsView) string {
	if v.All == 0 {
		return ""
	}
	parts := []string{Count(v.All) + " in all"}
	for _, s := range States() {
		if n := v.Counts[s]; n > 0 {
			parts = append(parts, Count(n)+" "+string(s))
		}
	}
	return strings.Join(parts, " · ")
}

func columnClass(c RunColumn) string {
	s := ""
	if c.Num {
		s = "num"
	}
	if c.Minor {
		s += " minor"
	}
	return strings.TrimSpace(s)
}

// Headline numbers of a run that has not trained a step are not known, whatever the zero values say.
func knownReward(r experiment.Run) float64 {
	if r.Progress.Step == 0 {
		return -2
	}
	return r.Progress.RewardMean
}

func knownPass(r experiment.Run) float64 {
	if r.Progress.Step == 0 {
		return -1
	}
	return r.Progress.PassRate
}

func knownEval(r experiment.Run) float64 {
	if r.Progress.Phase == "" || r.Progress.Phase == experiment.PhaseWarmup {
		return -1
	}
	return r.Progress.EvalPass
}

func doneValue(r experiment.Run) int64 { v, _ := Done(r); return v }
func doneMax(r experiment.Run) int64   { _, m := Done(r); return m }
