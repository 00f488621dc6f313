package templates

import (
	"fmt"
	"strconv"
	"strings"

	"agentrl/internal/experiment"
	"agentrl/internal/metric"
	"agentrl/internal/trajectory"
)

func runURL(id int64) string { return "/runs/" + strconv.FormatInt(id, 10) }

func runTabs(id int64) []Tab {
	u := runURL(id)
	return []Tab{
		{Key: "overview", Text: "Overview", Href: u},
		{Key: "rollouts", Text: "Rollouts", Href: u + "/rollouts"},
		{Key: "groups", Text: "Groups", Href: u + "/groups"},
		{Key: "evaluations", Text: "Evaluations", Href: u + "/evaluations"},
		{Key: "config", Text: "Config", Href: u + "/config"},
		{Key: "attempts", Text: "Attempts", Href: u + "/attempts"},
		{Key: "log", Text: "Log", Href: u + "/log"},
	}
}

// runFacts is the line under the title: preset size, mix, pool, worker, attempt.
func runFacts(v RunView) []string {
	c := v.Run.Config
	size := strings.TrimSpace(c.Policy.Engine + " " + c.Policy.Base)
	if v.Run.Progress.Parameters > 0 {
		size += fmt.Sprintf(" %.2f M", float64(v.Run.Progress.Parameters)/1e6)
	}
	out := []string{size}
	if s := mixText(c.Tasks); s != "" {
		out = append(out, s)
	}
	if s := poolText(c.Policy.Pool); s != "" {
		out = append(out, s)
	}
	out = append(out, "seed "+strconv.FormatUint(v.Run.Seed, 10))
	switch {
	case v.Run.WorkerID != "":
		out = append(out, "worker "+v.Run.WorkerID)
	case v.Run.State == experiment.Queued:
		out = append(out, "waiting for a worker of queue "+v.Run.Queue)
	}
	if v.Run.Attempt > 0 {
		out = append(out, "attempt "+strconv.Itoa(v.Run.Attempt))
	}
	return out
}

// mixText is a task mix in shares: "AF 60 % DB 40 %".
func mixText(mix []experiment.TaskMix) string {
	var total float64
	for _, t := range mix {
		total += t.Weight
	}
	if total <= 0 {
		return ""
	}
	parts := make([]string, len(mix))
	for i, t := range mix {
		parts[i] = fmt.Sprintf("%s %.0f %%", TaskCode(t.Task), 100*t.Weight/total)
	}
	return strings.Join(parts, " ")
}

// poolText is a pool in shares: "cross: C 75 % S 25 %".
func poolText(p experiment.Pool) string {
	if p.Mode == "" {
		return ""
	}
	var total float64
	for _, m := range p.Members {
		total += m.Weight
	}
	if p.Mode == "single" || total <= 0 {
		return p.Mode
	}
	parts := make([]string, len(p.Members))
	for i, m := range p.Members {
		parts[i] = fmt.Sprintf("%s %.0f %%", memberLetter(m.Policy), 100*m.Weight/total)
	}
	return p.Mode + ": " + strings.Join(parts, " ")
}

func memberLetter(policy string) string {
	switch policy {
	case "current":
		return "C"
	case "stale":
		return "S"
	}
	return policy
}

func etaText(r experiment.Run) string {
	if d := Remaining(r); d >= 0 {
		return "about " + Span(d) + " left"
	}
	return ""
}

// lastOf is the latest value of a metric, or "…" before its first point.
func lastOf(numbers []metric.Summary, name string, decimals int) string {
	for _, m := range numbers {
		if m.Metric == name {
			if m.N == m.NaN {
				return NotApplicable
			}
			return Fixed(m.Last, decimals)
		}
	}
	return NotYet
}

// endWord is a short word for the end of an episode.
func endWord(s trajectory.Status) string {
	switch s {
	case trajectory.Completed:
		return "failed"
	case trajectory.TaskLimitReached, trajectory.TurnCap:
		return "turn limit"
	case trajectory.AgentContextLimit, trajectory.LengthCap:
		return "too long"
	case trajectory.AgentValidationFailed:
		return "not valid"
	case trajectory.AgentInvalidAction:
		return "bad action"
	}
	return string(s)
}
