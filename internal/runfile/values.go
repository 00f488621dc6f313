package runfile

import (
	"encoding"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// into reads a node as the type of v.
func (r *reader) into(n ast.Node, v reflect.Value, path string, depth int) {
	if depth > maxDepth {
		r.bad(n, path, "keys are nested more than %d deep", maxDepth)
		return
	}
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode:
		r.bad(n, path, "anchors and aliases are not allowed in a run file")
		return
	case *ast.TagNode:
		r.bad(n, path, "tags are not allowed in a run file")
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if text, ok := r.text(n, path, "a duration such as 90s, 20m or 1h"); ok {
			if err := u.UnmarshalText([]byte(text)); err != nil {
				r.bad(n, path, "%s", err.Error())
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		r.structure(n, v, path, depth)
	case reflect.Slice:
		r.list(n, v, path, depth)
	case reflect.String:
		if text, ok := r.text(n, path, "text"); ok {
			v.SetString(text)
		}
	case reflect.Bool:
		b, ok := n.(*ast.BoolNode)
		if !ok {
			r.bad(n, path, "%s is not allowed; allowed are true and false", shown(n))
			return
		}
		v.SetBool(b.Value)
	case reflect.Int, reflect.Int64:
		r.whole(n, v, path)
	case reflect.Uint64:
		text, ok := plain(n)
		x, err := strconv.ParseUint(strings.ReplaceAll(text, "_", ""), 0, 64)
		if !ok || err != nil {
			r.bad(n, path, "%s is not allowed; a whole number from 0 to %d is", shown(n), uint64(math.MaxUint64))
			return
		}
		v.SetUint(x)
	case reflect.Float64:
		text, ok := plain(n)
		x, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
		if !ok || err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			r.bad(n, path, "%s is not allowed; a number such as 0.5 or 2e-4 is", shown(n))
			return
		}
		v.SetFloat(x)
	default:
		r.bad(n, path, "this key cannot be read")
	}
}

func (r *reader) whole(n ast.Node, v reflect.Value, path string) {
	text, ok := plain(n)
	x, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 0, 64)
	if !ok || err != nil || v.OverflowInt(x) {
		r.bad(n, path, "%s is not allowed; a whole number is", shown(n))
		return
	}
	v.SetInt(x)
}

func (r *reader) list(n ast.Node, v reflect.Value, path string, depth int) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		r.bad(n, path, "this must be a list, one entry a line after \"- \"")
		return
	}
	if len(s.Values) > maxItems {
		r.bad(n, path, "the list has %d entries; at most %d are allowed", len(s.Values), maxItems)
		return
	}
	out := reflect.MakeSlice(v.Type(), len(s.Values), len(s.Values))
	for i, item := range s.Values {
		p := fmt.Sprintf("%s[%d]", path, i)
		r.at[p] = where(item)
		if item == nil {
			r.bad(n, p, "the entry is empty")
			continue
		}
		r.into(item, out.Index(i), p, depth+1)
	}
	v.Set(out)
}

// text reads words; numbers and the like must be quoted to count as words.
func (r *reader) text(n ast.Node, path, what string) (string, bool) {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value, true
	case *ast.LiteralNode:
		if s.Value != nil {
			return s.Value.Value, true
		}
		return "", true
	}
	r.bad(n, path, "%s is not allowed; %s is (in quotes when it looks like a number)", shown(n), what)
	return "", false
}

// plain returns the source text of an unquoted scalar.
func plain(n ast.Node) (string, bool) {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode:
	default:
		return "", false
	}
	t := n.GetToken()
	if t == nil || t.Type == token.DoubleQuoteType || t.Type == token.SingleQuoteType {
		return "", false
	}
	return strings.TrimSpace(t.Value), true
}

// shown is how a message quotes a value.
func shown(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a group of keys"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "an empty value"
	}
	t := n.GetToken()
	if t == nil {
		return "this value"
	}
	s := strings.TrimSpace(t.Value)
	if runes := []rune(s); len(runes) > 60 {
		s = string(runes[:60]) + "..."
	}
	return strconv.Quote(s)
}
