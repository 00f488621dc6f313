package templates

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"agentrl/internal/experiment"
	"agentrl/internal/trajectory"
)

func taskOptions(tasks []string) []Option {
	out := []Option{{"", "any"}}
	for _, t := range tasks {
		out = append(out, Option{t, t})
	}
	return out
}

func endOptions() []Option {
	out := []Option{{"", "any"}}
	for _, e := range trajectory.EndStates() {
		out = append(out, Option{string(e), strings.ToLower(string(e))})
	}
	return out
}

// turnsOf is the number of turns. Lists carry the turns' headers without their messages.
func turnsOf(t trajectory.Trajectory) string {
	n := max(len(t.Turns), t.NumTurns)
	if n == 0 {
		return NotApplicable
	}
	return strconv.Itoa(n)
}

func trainedWord(t trajectory.Trajectory) string {
	switch {
	case t.Phase == "eval":
		return NotApplicable
	case t.Dropped != "":
		return "no: " + t.Dropped
	case t.Trained:
		return "yes"
	}
	return "not yet"
}

func groupWord(g experiment.Group) string {
	switch {
	case g.Dropped != "":
		return "no: " + g.Dropped
	case g.AllEqual:
		return "all equal"
	}
	return "yes"
}

func groupLink(g experiment.Group) string {
	if len(g.Members) > 0 {
		return "/trajectories/" + g.Members[0]
	}
	return runURL(g.RunID) + "/rollouts?draw=" + strconv.FormatInt(g.Draw, 10)
}

// letterShares counts who wrote the turns of a group: "C 74 % S 26 %".
func letterShares(members []string) string {
	n := map[rune]int{}
	total := 0
	for _, m := range members {
		for _, l := range m {
			n[l]++
			total++
		}
	}
	if total == 0 {
		return NotApplicable
	}
	letters := make([]string, 0, len(n))
	for l := range n {
		letters = append(letters, string(l))
	}
	sort.Strings(letters)
	for i, l := range letters {
		letters[i] = fmt.Sprintf("%s %.0f %%", l, 100*float64(n[[]rune(l)[0]])/float64(total))
	}
	return strings.Join(letters, " ")
}

func startOf(a experiment.Attempt) string {
	if a.StartStep == 0 && a.StartWarmup > 0 {
		return "warm start " + Count(a.StartWarmup)
	}
	return Count(a.StartStep)
}

func lasted(now time.Time, a experiment.Attempt) string {
	if a.EndedAt.IsZero() {
		return Span(now.Sub(a.StartedAt))
	}
	return Span(a.EndedAt.Sub(a.StartedAt))
}

func levelWord(level string) string {
	switch level {
	case "warn":
		return "warning: "
	case "error":
		return "error: "
	}
	return ""
}

func evalEmpty(c experiment.Config) string {
	if c.Eval.Every == 0 || len(c.Eval.Tasks) == 0 {
		return "This run was configured without evaluation."
	}
	return fmt.Sprintf("The current policy is evaluated on unseen samples before the first update and every %d updates. Nothing has been evaluated yet.", c.Eval.Every)
}

func evalNote(c experiment.Config) string {
	attempts := "1 attempt"
	if c.Eval.Attempts != 1 {
		attempts = strconv.Itoa(c.Eval.Attempts) + " attempts"
	}
	return fmt.Sprintf("%d samples, %s each, current policy only. The band is a 95 %% bootstrap over samples.", c.Eval.Samples, attempts)
}
