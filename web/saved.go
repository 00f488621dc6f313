package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
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

// parseMix reads the YAML of a task mix and checks it as a run's would be.
func parseMix(body string, tasks []string) ([]experiment.TaskMix, error) {
	var mix []experiment.TaskMix
	if err := decodeYAML(body, &mix); err != nil {
		return nil, err
	}
	c := experiment.Defaults()
	c.Tasks = mix
	return mix, firstAt(experiment.Validate(c, tasks), "tasks")
}

// parsePool reads the YAML of a policy pool and checks it as a run's would be.
func parsePool(body string) (experiment.Pool, error) {
	var pool experiment.Pool
	if err := decodeYAML(body, &pool); err != nil {
		return pool, err
	}
	c := experiment.Defaults()
	c.Policy.Pool = pool
	return pool, firstAt(experiment.Validate(c, nil), "policy.pool")
}

// decodeYAML reads strictly: unknown keys, wrong types and a second document are refused with their line.
func decodeYAML(body string, v any) error {
	switch {
	case len(body) > maxSavedBody:
		return errs.Field("body", "has %d bytes; at most %d are allowed", len(body), maxSavedBody)
	case !utf8.ValidString(body):
		return errs.Field("body", "is not valid UTF-8")
	case strings.TrimSpace(body) == "":
		return errs.Field("body", "is empty")
	}
	if err := yamlDepth(body); err != nil {
		return err
	}
	d := yaml.NewDecoder(bytes.NewReader([]byte(body)), yaml.Strict())
	if err := d.Decode(v); err != nil {
		return errs.Field("body", "%s", clip(yamlText(err), 300))
	}
	var rest any
	if err := d.Decode(&rest); !errors.Is(err, io.EOF) {
		return errs.Field("body", "must hold one YAML document")
	}
	return nil
}

// yamlDepth refuses flow nesting that would cost the parser its stack, and aliases, which can expand without bound.
func yamlDepth(body string) error {
	depth := 0
	for i, c := range body {
		switch c {
		case '[', '{':
			if depth++; depth > maxDepth {
				return errs.Field("body", "is nested too deeply: at most %d levels are accepted", maxDepth)
			}
		case ']', '}':
			depth--
		case '&', '*':
			if i == 0 || strings.ContainsRune(" \t\n[{,:-", rune(body[i-1])) {
				return errs.Field("body", "anchors and aliases (& and *) are not accepted")
			}
		}
	}
	for line := range strings.Lines(body) {
		indent := len(line) - len(strings.TrimLeft(line, " \t-?"))
		if indent > 2*maxDepth {
			return errs.Field("body", "is nested too deeply: at most %d levels are accepted", maxDepth)
		}
	}
	return nil
}

// yamlText is the first line of the parser's message with its position.
func yamlText(err error) string {
	var ye yaml.Error
	if errors.As(err, &ye) {
		if t := ye.GetToken(); t != nil {
			return fmt.Sprintf("line %d, column %d: %s", t.Position.Line, t.Position.Column, ye.GetMessage())
		}
		return ye.GetMessage()
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// firstAt is the first problem below a key, told as one of the body.
func firstAt(problems []*errs.Error, prefix string) error {
	for _, p := range problems {
		if p.Field == prefix || strings.HasPrefix(p.Field, prefix+".") || strings.HasPrefix(p.Field, prefix+"[") {
			at := strings.TrimPrefix(strings.TrimPrefix(p.Field, prefix), ".")
			if at != "" {
				at += ": "
			}
			return errs.Field("body", "%s%s", at, p.Message)
		}
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
