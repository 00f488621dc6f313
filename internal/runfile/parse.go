package runfile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"agentrl/internal/experiment"
)

// Limits on what a run file may be made of.
const (
	maxDepth    = 12
	maxItems    = 1000 // of one list
	maxProblems = 50
)

func parse(data []byte, tasks []string) (experiment.Config, []Problem) {
	c := experiment.Defaults()
	r := &reader{at: map[string]position{}}
	if p, ok := precheck(data); !ok {
		return c, []Problem{p}
	}
	body, problem := root(data)
	if problem != nil {
		return c, []Problem{*problem}
	}
	if body != nil {
		r.into(body, reflect.ValueOf(&c).Elem(), "", 0)
	}
	if len(r.problems) > 0 {
		return c, r.problems
	}
	for _, e := range experiment.Validate(c, tasks) {
		pos := r.nearest(e.Field)
		r.problems = append(r.problems, Problem{Line: pos.line, Column: pos.column, Path: e.Field, Message: e.Message})
	}
	return c, r.problems
}

// precheck refuses what the YAML parser should not even see.
func precheck(data []byte) (Problem, bool) {
	if len(data) > MaxBytes {
		return Problem{Line: 1, Column: 1, Message: fmt.Sprintf("the file has %d bytes; at most %d are allowed", len(data), MaxBytes)}, false
	}
	line, depth, deepest := 1, 0, 0
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n <= 1:
			return Problem{Line: line, Column: 1, Message: "the file is not valid UTF-8 text"}, false
		case r == 0:
			return Problem{Line: line, Column: 1, Message: "the file holds a zero byte; it must be text"}, false
		case r == '\n':
			line++
		case r == '{' || r == '[':
			depth++
			deepest = max(deepest, depth)
		case r == '}' || r == ']':
			depth--
		}
		i += n
	}
	if deepest > maxDepth {
		return Problem{Line: 1, Column: 1, Message: fmt.Sprintf("brackets are nested %d deep; at most %d levels are allowed", deepest, maxDepth)}, false
	}
	for i, text := range strings.Split(string(data), "\n") {
		indent := len(text) - len(strings.TrimLeft(text, " -"))
		if indent > 200 {
			return Problem{Line: i + 1, Column: 1, Message: "the line is indented by more than 200 characters"}, false
		}
	}
	return Problem{}, true
}

// root returns the body of the only document, nil for an empty file.
func root(data []byte) (body ast.Node, problem *Problem) {
	defer func() {
		if r := recover(); r != nil {
			body, problem = nil, &Problem{Line: 1, Column: 1, Message: "the file is not readable as YAML"}
		}
	}()
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		p := Problem{Line: 1, Column: 1, Message: "not valid YAML: " + firstLine(err.Error())}
		var y yaml.Error
		if errors.As(err, &y) {
			p.Message = "not valid YAML: " + y.GetMessage()
			if t := y.GetToken(); t != nil && t.Position != nil {
				p.Line, p.Column = t.Position.Line, t.Position.Column
			}
		}
		return nil, &p
	}
	var bodies []ast.Node
	for _, d := range file.Docs {
		if d != nil && d.Body != nil && d.Body.Type() != ast.CommentType {
			bodies = append(bodies, d.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return nil, nil
	case 1:
		return bodies[0], nil
	}
	pos := where(bodies[1])
	return nil, &Problem{Line: pos.line, Column: pos.column, Message: "a run file is one YAML document, here a second one begins"}
}

func firstLine(s string) string {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[:i]
	}
	return s
}

// reader copies a YAML tree into a configuration and remembers where every key stands.
type reader struct {
	at       map[string]position
	problems []Problem
}

type position struct{ line, column int }

func where(n ast.Node) position {
	if n == nil || reflect.ValueOf(n).IsNil() {
		return position{}
	}
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return position{}
	}
	return position{t.Position.Line, t.Position.Column}
}

func (r *reader) bad(n ast.Node, path, format string, args ...any) {
	if len(r.problems) >= maxProblems {
		return
	}
	pos := where(n)
	r.problems = append(r.problems, Problem{Line: pos.line, Column: pos.column, Path: path, Message: fmt.Sprintf(format, args...)})
}

// nearest returns where a key stands, or else the closest key above it.
func (r *reader) nearest(path string) position {
	for path != "" {
		if p, ok := r.at[path]; ok {
			return p
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			break
		}
		path = path[:i]
	}
	return position{}
}

// keys returns the YAML names of a struct's fields in order.
func keys(t reflect.Type) []string {
	out := make([]string, 0, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		out = append(out, name)
	}
	return out
}

func (r *reader) structure(n ast.Node, v reflect.Value, path string, depth int) {
	var values []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	case *ast.NullNode:
		r.bad(n, path, "the value is missing; keys that belong here are %s", strings.Join(keys(v.Type()), ", "))
		return
	default:
		if path == "" {
			r.bad(n, path, "a run file is a list of keys with values, such as \"name: my run\"")
		} else {
			r.bad(n, path, "this must be keys with values; allowed are %s", strings.Join(keys(v.Type()), ", "))
		}
		return
	}
	names := keys(v.Type())
	seen := map[string]bool{}
	for _, mv := range values {
		if mv == nil || mv.Key == nil {
			continue
		}
		if _, ok := mv.Key.(*ast.MergeKeyNode); ok {
			r.bad(mv.Key, path, "merge keys are not allowed in a run file")
			continue
		}
		t := mv.Key.GetToken()
		if t == nil {
			continue
		}
		key := t.Value
		full := key
		if path != "" {
			full = path + "." + key
		}
		i := slices.Index(names, key)
		if i < 0 {
			in := ""
			if path != "" {
				in = " in " + path
			}
			r.bad(mv.Key, full, "unknown key %q%s; allowed are %s", key, in, strings.Join(names, ", "))
			continue
		}
		if seen[key] {
			r.bad(mv.Key, full, "the key %q stands here twice", key)
			continue
		}
		seen[key] = true
		r.at[full] = where(mv.Key)
		r.into(mv.Value, v.Field(i), full, depth+1)
	}
}
