package templates

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"agentrl/internal/experiment"
	"agentrl/internal/trajectory"
)

// NotYet stands for a number that is still to come, NotApplicable for one that never will.
const (
	NotYet        = "…"
	NotApplicable = "–"
)

// Count writes a whole number with thousands separators.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	if neg {
		s = "-" + s
	}
	return s
}

// Short writes a large number with a unit: 1.2 M.
func Short(n int64) string {
	switch v := float64(n); {
	case n < 10_000:
		return Count(n)
	case n < 1_000_000:
		return strconv.FormatFloat(v/1e3, 'f', 1, 64) + " k"
	case n < 1_000_000_000:
		return strconv.FormatFloat(v/1e6, 'f', 1, 64) + " M"
	default:
		return strconv.FormatFloat(v/1e9, 'f', 1, 64) + " G"
	}
}

// Bytes writes a size.
func Bytes(n int64) string {
	switch v := float64(n); {
	case n < 1<<10:
		return Count(n) + " B"
	case n < 1<<20:
		return strconv.FormatFloat(v/(1<<10), 'f', 1, 64) + " KiB"
	case n < 1<<30:
		return strconv.FormatFloat(v/(1<<20), 'f', 1, 64) + " MiB"
	default:
		return strconv.FormatFloat(v/(1<<30), 'f', 1, 64) + " GiB"
	}
}

// Fixed writes a number with a fixed count of decimals; NaN is not applicable.
func Fixed(v float64, decimals int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return NotApplicable
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Trim(s, "-0.") == "" {
		s = strings.TrimPrefix(s, "-")
	}
	return s
}

// Figure writes a number of any size with four significant digits.
func Figure(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return NotApplicable
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// Rate writes a share in [0, 1]; a negative one is not known yet.
func Rate(v float64) string {
	if v < 0 {
		return NotYet
	}
	return Fixed(v, 3)
}

// Reward writes a mean reward; below -1 it is not known yet.
func Reward(v float64) string {
	if v < -1 {
		return NotYet
	}
	return Fixed(v, 3)
}

// Span writes a duration as "3 m 12 s".
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return NotApplicable
	case d > 0 && d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + " µs"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatInt(int64(d.Seconds()), 10) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%d m %d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d m", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%d d %d h", int(d.Hours())/24, int(d.Hours())%24)
	}
}

// Ago writes how long before now t was.
func Ago(now, t time.Time) string {
	if t.IsZero() {
		return NotApplicable
	}
	d := now.Sub(t)
	if d < 2*time.Second {
		return "now"
	}
	if d >= time.Hour && d < 48*time.Hour {
		return strconv.Itoa(int(d.Hours())) + " h ago"
	}
	if d >= time.Minute && d < time.Hour {
		return strconv.Itoa(int(d.Minutes())) + " m ago"
	}
	if d >= 48*time.Hour {
		return strconv.Itoa(int(d.Hours())/24) + " d ago"
	}
	return Span(d) + " ago"
}

// TaskCode is the two letters of a task; an unknown task keeps the first two of its name.
func TaskCode(task string) string {
	codes := []struct{ prefix, code string }{
		{"alfworld", "AF"}, {"dbbench", "DB"}, {"knowledgegraph", "KG"}, {"kg", "KG"}, {"os", "OS"}, {"webshop", "WS"},
	}
	for _, c := range codes {
		if strings.HasPrefix(task, c.prefix) {
			return c.code
		}
	}
	if len(task) < 2 {
		return "??"
	}
	return strings.ToUpper(task[:2])
}

// RunTone maps a state to the tone of its chip.
func RunTone(s experiment.State) string {
	switch s {
	case experiment.Running:
		return "good"
	case experiment.Stopping:
		return "caution"
	case experiment.Failed:
		return "bad"
	case experiment.Finished:
		return "information"
	}
	return "idle"
}

// RunDetail says where a run stands in words, e.g. "step 128 of 300".
func RunDetail(r experiment.Run) string {
	p := r.Progress
	switch r.State {
	case experiment.Running, experiment.Stopping:
		switch p.Phase {
		case experiment.PhaseWarmup:
			return "warm start " + of(p.WarmupStep, p.WarmupSteps)
		case experiment.PhaseEval:
			return "evaluating at step " + Count(p.Step)
		case experiment.PhaseRL:
			return "step " + of(p.Step, p.Steps)
		}
		return "starting"
	case experiment.Stopped, experiment.Failed, experiment.Cancelled, experiment.Finished:
		if p.Step > 0 {
			return "step " + of(p.Step, p.Steps)
		}
	}
	return ""
}

func of(n, total int64) string {
	if total <= 0 {
		return Count(n)
	}
	return Count(n) + " of " + Count(total)
}

// Remaining estimates the time to the end of the RL phase from the moving mean of a step; negative: not known.
func Remaining(r experiment.Run) time.Duration {
	p := r.Progress
	if r.State != experiment.Running || p.Phase == experiment.PhaseWarmup || p.StepSeconds <= 0 || p.Steps <= p.Step {
		return -1
	}
	return time.Duration(float64(p.Steps-p.Step) * p.StepSeconds * float64(time.Second))
}

// Done is the share of the work that is behind a run: the warm start counts as its own whole before the RL phase.
func Done(r experiment.Run) (value, max int64) {
	p := r.Progress
	if p.Phase == experiment.PhaseWarmup {
		return p.WarmupStep, maxInt(p.WarmupSteps, 1)
	}
	return p.Step, maxInt(p.Steps, 1)
}

func maxInt(a, b int64) int64 {
	if a > b {
		return a
	}
	return b
}

// LetterClass is the style of a policy letter; letters without a colour of their own are external.
func LetterClass(l string) string {
	switch l {
	case "C", "S", "A", "B":
		return l
	}
	return "X"
}

// LetterName says what a policy letter stands for.
func LetterName(l string) string {
	switch l {
	case "C":
		return "current policy"
	case "S":
		return "stale policy"
	}
	return "policy " + l
}

// StatusTone maps the end of an episode to a tone.
func StatusTone(s trajectory.Status) string {
	switch s.Class() {
	case trajectory.ClassRunning:
		return "good"
	case trajectory.ClassNormal:
		return "information"
	case trajectory.ClassPolicy:
		return "caution"
	}
	return "bad"
}
