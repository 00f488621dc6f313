package web

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/runfile"
)

// A draft is a run file that is being written. Its text is the truth; fields are read from it and written into it, so
// that comments and keys without a field survive.
type draft struct {
	text string
	tree map[string]any // nil when the text is not YAML
}

func newDraft(text string) draft {
	d := draft{text: text}
	if len(text) <= runfile.MaxBytes {
		var m map[string]any
		if yaml.Unmarshal([]byte(text), &m) == nil {
			d.tree = m
		}
	}
	return d
}

// value reads the scalar at a dotted path as text; ok is false when the file leaves it out.
func (d draft) value(path string) (text string, ok bool) {
	var at any = d.tree
	for _, key := range strings.Split(path, ".") {
		m, isMap := at.(map[string]any)
		if !isMap {
			return "", false
		}
		if at, ok = m[key]; !ok {
			return "", false
		}
	}
	return scalarText(at)
}

func scalarText(v any) (string, bool) {
	switch x := v.(type) {
	case nil, map[string]any, []any:
		return "", false
	case float64:
		if math.Abs(x) >= 1e-3 || x == 0 {
			return strconv.FormatFloat(x, 'f', -1, 64), true
		}
		return strconv.FormatFloat(x, 'g', -1, 64), true
	default:
		return fmt.Sprint(x), true
	}
}

// set writes a node at a dotted path. node is YAML; missing maps on the way are made.
func (d draft) set(path, node string) (draft, error) {
	if d.tree == nil {
		return d, errs.Field("yaml", "the file is not valid YAML yet; mend it before using the form")
	}
	file, err := parser.ParseBytes([]byte(d.text), parser.ParseComments)
	if err != nil {
		return d, errs.Wrap(errs.Invalid, err, "the file is not valid YAML yet; mend it before using the form")
	}
	keys := strings.Split(path, ".")
	depth := d.depth(keys)
	if depth == 0 { // nothing of it is there: a new block at the end keeps everything before it untouched
		text := strings.TrimRight(d.text, "\n") + "\n" + nest(keys, node) + "\n"
		return newDraft(strings.TrimLeft(text, "\n")), nil
	}
	p, err := yaml.PathString("$." + strings.Join(keys[:depth], "."))
	if err != nil {
		return d, fmt.Errorf("path %q: %w", path, err)
	}
	if depth == len(keys) {
		err = p.ReplaceWithReader(file, strings.NewReader(node))
	} else {
		err = p.MergeFromReader(file, strings.NewReader(nest(keys[depth:], node)))
	}
	if err != nil {
		return d, errs.Wrap(errs.Invalid, err, "this part of the file has another shape than the form expects; change it in the file")
	}
	return newDraft(strings.TrimRight(file.String(), "\n") + "\n"), nil
}

// depth is how many keys of the path the file has.
func (d draft) depth(keys []string) int {
	var at any = d.tree
	for i, key := range keys {
		m, ok := at.(map[string]any)
		if !ok {
			return i
		}
		if at, ok = m[key]; !ok {
			return i
		}
	}
	return len(keys)
}

// nest writes a node below keys as block YAML.
func nest(keys []string, node string) string {
	var b strings.Builder
	for i, k := range keys {
		b.WriteString(strings.Repeat("  ", i) + k + ":")
		if i < len(keys)-1 {
			b.WriteString("\n")
		}
	}
	if strings.Contains(node, "\n") || strings.HasPrefix(node, "- ") || strings.HasPrefix(node, "mode:") {
		for _, line := range strings.Split(strings.TrimRight(node, "\n"), "\n") {
			b.WriteString("\n" + strings.Repeat("  ", len(keys)) + line)
		}
		return b.String()
	}
	return b.String() + " " + node
}

// scalarYAML writes a field's text as a YAML scalar: numbers and truth values as they are, everything else such that it
// stays text.
func scalarYAML(text string) string {
	if text == "true" || text == "false" {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil && !strings.ContainsAny(text, "xXpP_iInN") {
		return text
	}
	b, err := yaml.Marshal(text)
	if err != nil {
		return strconv.Quote(text)
	}
	return strings.TrimSpace(string(b))
}

// mix reads the weights of the task mix.
func (d draft) mix() map[string]string {
	out := map[string]string{}
	list, _ := d.tree["tasks"].([]any)
	for _, e := range list {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
		name, ok := scalarText(m["task"])
		if !ok {
			continue
		}
		w, ok := scalarText(m["weight"])
		if !ok {
			w = "1"
		}
		out[name] = w
	}
	return out
}

// mixYAML writes a mix in the order of names, leaving out empty weights.
func mixYAML(names []string, weights map[string]string) string {
	var b strings.Builder
	for _, n := range names {
		if w := weights[n]; w != "" {
			b.WriteString("- {task: " + scalarYAML(n) + ", weight: " + scalarYAML(w) + "}\n")
		}
	}
	if b.Len() == 0 {
		return "[]"
	}
	return strings.TrimRight(b.String(), "\n")
}

// pool reads the parts of the pool that the form edits: mode, the stale member's weight and refresh interval.
func (d draft) pool() (mode, stale, refresh string) {
	mode, _ = d.value("policy.pool.mode")
	policy, _ := d.tree["policy"].(map[string]any)
	p, _ := policy["pool"].(map[string]any)
	members, _ := p["members"].([]any)
	for _, e := range members {
		m, ok := e.(map[string]any)
		if !ok || m["policy"] != "stale" {
			continue
		}
		stale, _ = scalarText(m["weight"])
		refresh, _ = scalarText(m["refresh_every"])
	}
	return mode, stale, refresh
}

// poolYAML writes a pool of the current policy and a stale one; a stale weight that is no number stays, so that the
// validation can name it.
func poolYAML(mode, stale, refresh string) string {
	if mode == "single" {
		return "mode: single\nmembers:\n  - {policy: current, weight: 1}"
	}
	current := "1"
	if w, err := strconv.ParseFloat(stale, 64); err == nil {
		current = strconv.FormatFloat(math.Round((1-w)*1e6)/1e6, 'f', -1, 64)
	}
	return "mode: " + scalarYAML(mode) + "\nmembers:\n  - {policy: current, weight: " + current + "}\n" +
		"  - {policy: stale, weight: " + scalarYAML(stale) + ", refresh_every: " + scalarYAML(refresh) + "}"
}

// defaultsDraft is the file that a field falls back to where the text leaves its key out.
func defaultsDraft() draft {
	return newDraft(string(runfile.Format(experiment.Defaults())))
}
