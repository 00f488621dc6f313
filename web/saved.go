package web

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/runfile"
)

// The kinds of saved objects.
const (
	kindMix  = "mix"
	kindPool = "pool"
)

const (
	maxSavedBody = 64 << 10
	maxSavedName = 80
	maxNote      = 1000
)

// parseMix reads the YAML of a task mix as the tasks of a run file.
func parseMix(body string, tasks []string) ([]experiment.TaskMix, error) {
	conf, err := parsePart("tasks:\n", "  ", "tasks", body, tasks)
	return conf.Tasks, err
}

// parsePool reads the YAML of a policy pool as the pool of a run file.
func parsePool(body string) (experiment.Pool, error) {
	conf, err := parsePart("policy:\n  pool:\n", "    ", "policy.pool", body, nil)
	return conf.Policy.Pool, err
}

// parsePart puts a body under its key into an otherwise complete run file, so that one parser and one set of rules
// decide about both. Lines of problems are those of the body.
func parsePart(head, indent, prefix, body string, tasks []string) (experiment.Config, error) {
	switch {
	case len(body) > maxSavedBody:
		return experiment.Config{}, errs.Field("body", "has %d bytes; at most %d are allowed", len(body), maxSavedBody)
	case !utf8.ValidString(body):
		return experiment.Config{}, errs.Field("body", "is not valid UTF-8")
	}
	head = "name: part\n" + head
	var b strings.Builder
	b.WriteString(head)
	some := false
	for line := range strings.Lines(strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n")) {
		if t := strings.TrimSpace(line); t != "" && !strings.HasPrefix(t, "#") {
			some = true
		}
		b.WriteString(indent + line)
	}
	if !some {
		return experiment.Config{}, errs.Field("body", "is empty")
	}
	b.WriteString("\n")
	conf, problems := runfile.Parse([]byte(b.String()), tasks)
	return conf, partProblem(problems, prefix, strings.Count(head, "\n"), len(indent))
}

// partProblem is the first problem of a part: one in its lines, or one below its key.
func partProblem(problems []runfile.Problem, prefix string, skip, indent int) error {
	for _, p := range problems {
		below := p.Path == "" || p.Path == prefix || strings.HasPrefix(p.Path, prefix+".") || strings.HasPrefix(p.Path, prefix+"[")
		if p.Line <= skip && !below {
			continue
		}
		var at string
		if p.Line > skip {
			at = fmt.Sprintf("line %d, column %d: ", p.Line-skip, max(1, p.Column-indent))
		}
		if path := strings.TrimPrefix(strings.TrimPrefix(p.Path, prefix), "."); below && path != "" {
			at += path + ": "
		}
		return errs.Field("body", "%s%s", at, p.Message)
	}
	return nil
}

// saveObject checks and stores the next version of a mix or a pool.
func (s *Server) saveObject(r *request, kind, name, body, note string) (experiment.Saved, error) {
	var out experiment.Saved
	if err := checkName("name", name, maxSavedName); err != nil {
		return out, err
	}
	if strings.ContainsAny(name, "/?#%") {
		return out, errs.Field("name", "must not contain / ? # or %%")
	}
	if err := checkText("note", note, maxNote); err != nil {
		return out, err
	}
	if err := s.checkSaved(r, kind, body); err != nil {
		return out, err
	}
	out, err := s.store.SaveObject(r.Context(), experiment.Saved{Kind: kind, Name: name, Body: body, Note: note, AuthorID: r.user.ID})
	if err != nil {
		return out, err
	}
	s.record(r, kind+".save", kind+"/"+strconv.FormatInt(out.ID, 10), nil, map[string]any{"name": name, "version": out.Version})
	return out, nil
}

func (s *Server) checkSaved(r *request, kind, body string) error {
	var err error
	if kind == kindMix {
		_, err = parseMix(body, s.taskNames(r.Context()))
	} else {
		_, err = parsePool(body)
	}
	return err
}
