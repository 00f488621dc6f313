package templates

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"agentrl/internal/trajectory"
)

func trajectoryTitle(t trajectory.Trajectory) string {
	if t.Task == "" {
		return "Trajectory " + t.ID
	}
	return fmt.Sprintf("%s#%d, member %d", TaskCode(t.Task), t.Sample, t.Member)
}

func passWord(t trajectory.Trajectory) string {
	if t.Pass {
		return "passed"
	}
	return "not passed"
}

func trajectoryFacts(t trajectory.Trajectory) []string {
	if t.Task == "" {
		return nil
	}
	out := []string{t.Task, "group " + Count(t.Group)}
	if t.Phase == "eval" {
		out = append(out, "evaluation at step "+Count(t.Step))
	} else {
		out = append(out, "step "+Count(t.Step))
	}
	out = append(out, "attempt "+strconv.Itoa(t.Attempt))
	if t.Retry > 0 {
		out = append(out, "try "+strconv.Itoa(t.Retry+1))
	}
	if t.Conflict {
		out = append(out, "solved although it ended abnormally")
	}
	return out
}

func turnFacts(t trajectory.Trajectory, u trajectory.Turn) []string {
	out := []string{u.PolicyID + " v" + strconv.FormatInt(u.PolicyVersion, 10)}
	if age := t.Step - u.PolicyVersion; t.Phase != "eval" && age >= 0 {
		out = append(out, "staleness "+Count(age))
	}
	out = append(out,
		"tokens "+Count(int64(u.TokenEnd-u.TokenStart)),
		"prompt "+Count(int64(u.PromptTokens))+", "+Count(int64(u.CachedTokens))+" cached",
		"written in "+Span(u.EndedAt.Sub(u.StartedAt)),
		"environment "+Span(u.EnvLatency),
		"temperature "+strconv.FormatFloat(u.Sampling.Temperature, 'g', 3, 64))
	if u.Finish != "" && u.Finish != trajectory.FinishStop {
		out = append(out, "ended by "+string(u.Finish))
	}
	if u.Constrained {
		out = append(out, "decoding constrained")
	}
	if !u.Trainable {
		out = append(out, "not trained on")
	}
	if len(t.Logprobs) >= u.TokenEnd && u.TokenEnd > u.TokenStart {
		var s float64
		for _, lp := range t.Logprobs[u.TokenStart:u.TokenEnd] {
			s += float64(lp)
		}
		out = append(out, "mean log-prob "+Fixed(s/float64(u.TokenEnd-u.TokenStart), 3))
	}
	return out
}

func signed(v float64) string {
	if v > 0 {
		return "+" + Fixed(v, 2)
	}
	return Fixed(v, 2)
}

func toolNames(tools []trajectory.Tool) string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return strings.Join(names, ", ")
}

func sampledTokens(t trajectory.Trajectory) int {
	n := 0
	for _, u := range t.Turns {
		n += u.TokenEnd - u.TokenStart
	}
	return n
}

func headerLetters(t trajectory.Trajectory) string {
	if t.TurnLetters != "" {
		return t.TurnLetters
	}
	return t.Letters()
}

func allTokens(t trajectory.Trajectory) string {
	if t.NumTokens > 0 {
		return Count(int64(t.NumTokens))
	}
	return NotApplicable
}

func distinctLetters(t trajectory.Trajectory) []string {
	var out []string
	seen := map[string]bool{}
	for _, u := range t.Turns {
		if u.Letter != "" && !seen[u.Letter] {
			seen[u.Letter] = true
			out = append(out, u.Letter)
		}
	}
	return out
}

// PrettyJSON indents JSON; what is not JSON comes back as it is.
func PrettyJSON(s string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(s), "", "  ") != nil {
		return s
	}
	return b.String()
}

// ArgumentText is the arguments of a call as one reads them: the value alone when there is one text, else name=value.
func ArgumentText(args string) string {
	dec := json.NewDecoder(strings.NewReader(args))
	tok, err := dec.Token()
	if err != nil || tok != json.Delim('{') {
		return args
	}
	var parts []string
	var only any
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return args
		}
		var v any
		if err := dec.Decode(&v); err != nil {
			return args
		}
		only = v
		b, err := json.Marshal(v)
		if err != nil {
			return args
		}
		parts = append(parts, fmt.Sprint(key)+"="+string(b))
	}
	if s, ok := only.(string); ok && len(parts) == 1 {
		return s
	}
	return strings.Join(parts, ", ")
}
