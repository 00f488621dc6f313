package templates

import (
	"strconv"
	"strings"
	"time"

	"agentrl/internal/auth"
	"agentrl/internal/experiment"
)

const passwordHint = "15 characters or more are recommended; a sentence is fine, and so is what a password manager makes"

func idText(n int64) string { return strconv.FormatInt(n, 10) }

// RoleOptions are the roles up to the given one, lowest first.
func RoleOptions(most auth.Role) []Option {
	var out []Option
	for _, r := range []struct {
		role auth.Role
		does string
	}{
		{auth.Viewer, "viewer: reads everything"},
		{auth.Annotator, "annotator: also reviews trajectories"},
		{auth.Researcher, "researcher: also starts and stops runs"},
		{auth.Admin, "admin: also manages users"},
	} {
		if most.Allows(r.role) {
			out = append(out, Option{string(r.role), r.does})
		}
	}
	return out
}

// settingsTabs are the parts of the settings that a role may see.
func settingsTabs(p Page) []Tab {
	t := []Tab{{Key: "own", Text: "Account", Href: "/settings"}}
	if p.Can(auth.Admin) {
		t = append(t, Tab{Key: "users", Text: "Users", Href: "/settings/users"}, Tab{Key: "audit", Text: "Audit record", Href: "/settings/audit"})
	}
	return t
}

// JobTone maps a job's state to the tone of its chip.
func JobTone(s experiment.JobState) string {
	switch s {
	case experiment.JobActive:
		return "good"
	case experiment.JobDone:
		return "information"
	case experiment.JobFailed:
		return "bad"
	}
	return "idle"
}

// workerLost is after how long without a sign of life a worker counts as gone.
const workerLost = 30 * time.Second

func workerState(now time.Time, w experiment.Worker) (tone, word, detail string) {
	silent := now.Sub(w.SeenAt)
	switch {
	case silent > workerLost:
		return "bad", "lost", "last seen " + Ago(now, w.SeenAt)
	case w.Draining:
		return "caution", "draining", ""
	case len(w.RunIDs) >= w.Slots && w.Slots > 0:
		return "good", "busy", strconv.Itoa(len(w.RunIDs)) + " of " + strconv.Itoa(w.Slots) + " slots"
	default:
		return "good", "ready", strconv.Itoa(len(w.RunIDs)) + " of " + strconv.Itoa(w.Slots) + " slots"
	}
}

// agentWord shortens a user agent to what people recognise.
func agentWord(ua string) string {
	for _, b := range []string{"Firefox", "Edg", "OPR", "Chrome", "Safari", "curl"} {
		if strings.Contains(ua, b) {
			name := map[string]string{"Edg": "Edge", "OPR": "Opera"}[b]
			if name == "" {
				name = b
			}
			for _, os := range []string{"Windows", "Mac OS X", "Android", "iPhone", "Linux"} {
				if strings.Contains(ua, os) {
					return name + " on " + os
				}
			}
			return name
		}
	}
	if ua == "" {
		return NotApplicable
	}
	return ua
}

func percent(v float64) string { return Fixed(100*v, 1) + " %" }
