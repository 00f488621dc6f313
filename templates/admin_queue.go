package templates

import (
	"strings"
	"time"

	"agentrl/internal/experiment"
)

func queueFacts(v QueueView) string {
	var parts []string
	for _, s := range v.States {
		parts = append(parts, Count(v.Counts[s])+" "+string(s))
	}
	return strings.Join(parts, " · ")
}

// queueShown says that a list which stops at its limit is not the whole.
func queueShown(v QueueView) string {
	n := Count(int64(len(v.Jobs)))
	if len(v.Jobs) >= v.Limit {
		return "the newest " + n + " jobs that match"
	}
	if len(v.Jobs) == 1 {
		return "1 job"
	}
	return n + " jobs, newest first"
}

func jobRun(v QueueView, j experiment.Job) string {
	if n := v.Names[j.RunID]; n != "" {
		return n
	}
	return "run " + idText(j.RunID)
}

func jobTook(now time.Time, j experiment.Job) string {
	switch {
	case j.StartedAt.IsZero():
		return NotApplicable
	case j.FinishedAt.IsZero() && j.State == experiment.JobActive:
		return Span(now.Sub(j.StartedAt))
	case j.FinishedAt.IsZero():
		return NotApplicable
	}
	return Span(j.FinishedAt.Sub(j.StartedAt))
}

func orDash(s string) string {
	if s == "" {
		return NotApplicable
	}
	return s
}

func runName(names map[int64]string, id int64) string {
	if n := names[id]; n != "" {
		return n
	}
	return "run " + idText(id)
}
