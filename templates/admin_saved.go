package templates

import (
	"net/url"
	"strconv"

	"agentrl/internal/experiment"
)

func kindWord(kind string) string {
	if kind == "pool" {
		return "policy pool"
	}
	return "task mix"
}

func savedHref(kind, name string) string { return "/saved/" + kind + "/" + url.PathEscape(name) }

func savedTitle(v SavedFormView) string {
	if v.Fixed {
		return v.Name
	}
	return "New " + kindWord(v.Kind)
}

func savedFacts(v SavedFormView) string {
	if !v.Fixed {
		return ""
	}
	if v.Shown.Version == 0 {
		return kindWord(v.Kind)
	}
	facts := kindWord(v.Kind) + " · version " + strconv.Itoa(v.Shown.Version)
	if n := len(v.Versions); n > 0 {
		facts += " of " + strconv.Itoa(n)
	}
	return facts
}

func savedButton(v SavedFormView) string {
	if v.Fixed {
		return "Save as version " + strconv.Itoa(len(v.Versions)+1)
	}
	return "Save"
}

func savedBodyLabel(kind string) string {
	if kind == "pool" {
		return "Mode and members (YAML)"
	}
	return "Tasks and weights (YAML)"
}

func savedHint(kind string) string {
	if kind == "pool" {
		return "mode is single, mix (one policy per trajectory) or cross (drawn at every turn); weights are relative"
	}
	return "weights are relative: how often each task is sampled"
}

func savedOptions(list []experiment.Saved) []Option {
	out := []Option{{"", "none"}}
	for _, o := range list {
		out = append(out, Option{idText(o.ID), o.Name + ", version " + strconv.Itoa(o.Version)})
	}
	return out
}

func dryFacts(d DryView) string {
	return Count(int64(d.Groups)) + " groups of one sample each, " + Count(int64(d.Trajectories)) + " trajectories of " +
		Count(int64(d.Turns)) + " turns. Tasks are interleaved by weight, so every batch comes close to the means; every sample comes once before any comes again."
}

func dryExample(d DryView) string {
	s := "The first batch of a run with this seed"
	if len(d.Example) < d.Groups {
		s += ", " + Count(int64(len(d.Example))) + " of " + Count(int64(d.Groups)) + " groups shown"
	}
	return s + "."
}

func countOrDash(n int64) string {
	if n <= 0 {
		return NotApplicable
	}
	return Count(n)
}

func batchesText(t DryTask) string {
	if t.Batches <= 0 {
		return NotApplicable
	}
	return Count(int64(t.Batches + 0.5))
}

func drySample(g DryGroup) string {
	if g.Sample < 0 {
		return g.Task
	}
	return g.Task + " #" + idText(g.Sample)
}
