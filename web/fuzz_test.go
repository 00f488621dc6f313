package web

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"agentrl/internal/errs"
)

// FuzzDecode holds that no body makes the decoder panic, that refusals can be shown, and that what is accepted is an
// object that the standard decoder reads the same.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"yaml":"name: a"}`, `{"config":{"name":"a"},"experiment_id":1}`, `{"experiment":5}`, `{"x":1}`, `[]`, `{`, ``, `null`, `{"yaml":"a"}x`,
		strings.Repeat("[", 100), `{"experiment":"\ud800"}`, "{\"yaml\":\"\xff\"}", `{"experiment_id":1e400}`, `{"yaml":"\"}}}"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var in, plain runInput
		if err := decodeJSON(b, &in); err != nil {
			if errs.CodeOf(err) != errs.Invalid || !utf8.ValidString(err.Error()) {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		if err := json.Unmarshal(b, &plain); err != nil {
			t.Fatalf("accepted what is not JSON: %v", err)
		}
		if in.YAML != plain.YAML || in.Experiment != plain.Experiment || in.ExperimentID != plain.ExperimentID {
			t.Fatalf("read %+v, the standard decoder %+v", in, plain)
		}
		_, _, _ = in.yaml()
	})
}

// FuzzSaved holds that no text of a mix or a pool makes the parser panic, and that what is accepted can be drawn from.
func FuzzSaved(f *testing.F) {
	for _, s := range []string{
		"- {task: alfworld-train, weight: 1}", "mode: cross\nmembers: [{policy: current, weight: 1}, {policy: stale, weight: 2, refresh_every: 3}]",
		"- {task: a, weight: .nan}", "- {task: a, weight: -1}", "&a [*a]", "[[[[", "mode: [", "- task: 5\n  weight: x", "---\n---\n", "!!binary x", "? {a: b}\n: c", "- - - - - -",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		in := dryInput{Prompts: 3, GroupSize: 2, Turns: 2, Seed: 1}
		mix, err := parseMix(s, nil)
		if err == nil {
			in.Mix = mix
		} else if errs.CodeOf(err) != errs.Invalid {
			t.Fatalf("refused with %v", err)
		}
		pool, err := parsePool(s)
		if err == nil {
			in.Pool = pool
		} else if errs.CodeOf(err) != errs.Invalid {
			t.Fatalf("refused with %v", err)
		}
		if _, err := dry(in, nil); err != nil {
			t.Fatalf("accepted %q, but it cannot be drawn from: %v", s, err)
		}
	})
}

// FuzzOrder holds that no message of a live connection makes the decoder panic.
func FuzzOrder(f *testing.F) {
	f.Add([]byte(`{"op":"sub","topic":"run/1/metrics","cursor":1,"params":{}}`))
	f.Add([]byte(`{"op":"sub","cursor":"x"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var o order
		if err := decodeJSON(b, &o); err != nil && errs.CodeOf(err) != errs.Invalid {
			t.Fatalf("refused with %v", err)
		}
	})
}

// FuzzLocalPath holds that a redirect after sign-in never leaves the site.
func FuzzLocalPath(f *testing.F) {
	for _, s := range []string{"/runs?x=1", "//evil", "/\\evil", "https://evil", "/a/../..//evil", "/%09/evil", "\t//evil", "/\n/evil"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := localPath(s)
		if !strings.HasPrefix(got, "/") || strings.HasPrefix(got, "//") || strings.ContainsAny(got, "\\\r\n\t") {
			t.Fatalf("%q leads to %q", s, got)
		}
	})
}
