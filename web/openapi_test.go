package web

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

func description(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(openAPI)
	check(t, err)
	check(t, doc.Validate(t.Context()))
	return doc
}

var pathParam = regexp.MustCompile(`:([a-z]+)`)

// TestDescription holds openapi.yaml against the route table in both directions, roles included.
func TestDescription(t *testing.T) {
	t.Parallel()
	doc := description(t)
	s := newWorld(t, "").srv
	described := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			described[method+" "+path] = true
		}
	}
	n := 0
	for _, rt := range s.table {
		if !strings.HasPrefix(rt.Path, "/api/") {
			continue
		}
		n++
		path := pathParam.ReplaceAllString(rt.Path, "{$1}")
		key := rt.Method + " " + path
		if !described[key] {
			t.Errorf("%s is not described", key)
			continue
		}
		delete(described, key)
		op := doc.Paths.Value(path).GetOperation(rt.Method)
		want := string(rt.Min)
		if rt.Min == anyone {
			want = "anyone"
		}
		if got, _ := op.Extensions["x-role"].(string); got != want {
			t.Errorf("%s: x-role %q, the route needs %q", key, got, want)
		}
		if op.Summary == "" || len(op.Tags) != 1 {
			t.Errorf("%s: a summary and one tag are needed", key)
		}
		for _, m := range pathParam.FindAllStringSubmatch(rt.Path, -1) {
			if op.Parameters.GetByInAndName("path", m[1]) == nil {
				t.Errorf("%s: the parameter %s is not described", key, m[1])
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d API routes", n)
	}
	for key := range described {
		t.Errorf("%s is described but does not exist", key)
	}
}

// conforms checks a JSON answer against the description of its route.
func conforms(t testing.TB, doc *openapi3.T, routePath string, a answer) {
	t.Helper()
	item := doc.Paths.Value(routePath)
	if item == nil {
		t.Fatalf("%s is not described", routePath)
	}
	op := item.GetOperation(a.Request.Method)
	ref := op.Responses.Status(a.StatusCode)
	if ref == nil {
		if a.StatusCode < 400 {
			t.Errorf("%s %s: status %d is not described", a.Request.Method, routePath, a.StatusCode)
			return
		}
		ref = op.Responses.Default()
	}
	mt := ref.Value.Content.Get("application/json")
	if mt == nil {
		if a.StatusCode != http.StatusNoContent {
			t.Errorf("%s %s: no JSON is described for %d", a.Request.Method, routePath, a.StatusCode)
		}
		return
	}
	var v any
	if err := json.Unmarshal([]byte(a.text), &v); err != nil {
		t.Errorf("%s %s: %v in %.300s", a.Request.Method, routePath, err, a.text)
		return
	}
	if err := mt.Schema.Value.VisitJSON(v, openapi3.MultiErrors()); err != nil {
		t.Errorf("%s %s: the answer does not conform: %.900v", a.Request.Method, routePath, err)
	}
}
