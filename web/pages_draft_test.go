package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"agentrl/internal/auth"
	"agentrl/internal/experiment"
	"agentrl/internal/runfile"
)

const smallFile = `# why
name: small # here
tasks:
  - {task: alfworld-train, weight: 1}
algorithm:
  group_size: 8
  clip: {low: 0.2, high: 0.2}
sampling: {temperature: 1.0}
`

func TestDraftKeepsWhatItDoesNotTouch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, node, want string }{
		{"algorithm.group_size", "4", "group_size: 4\n"},
		{"algorithm.clip.low", "0.1", "low: 0.1"},
		{"sampling.temperature", "0.8", "temperature: 0.8"},
		{"algorithm.kl.coef", "0.001", "coef: 0.001"},
		{"budget.steps", "12", "steps: 12"},
		{"name", `"a: b"`, `"a: b"`},
		{"policy.pool", poolYAML("cross", "0.5", "10"), "refresh_every: 10"},
		{"tasks", mixYAML([]string{"a", "b"}, map[string]string{"a": "1", "b": "2"}), "{task: b, weight: 2}"},
	} {
		d, err := newDraft(smallFile).set(c.path, c.node)
		if err != nil {
			t.Errorf("%s: %v", c.path, err)
			continue
		}
		if d.tree == nil || !strings.Contains(d.text, c.want) || !strings.Contains(d.text, "# why") {
			t.Errorf("%s: %s", c.path, d.text)
		}
		if c.path != "name" && !strings.Contains(d.text, "# here") {
			t.Errorf("%s: a comment is lost: %s", c.path, d.text)
		}
		if got, ok := d.value(c.path); !strings.ContainsAny(c.node, "\n{\"") && (!ok || got != c.node) {
			t.Errorf("%s reads back %q", c.path, got)
		}
	}
	if _, err := newDraft("a: [").set("name", "x"); err == nil {
		t.Error("a broken file cannot be edited by the form")
	}
	if _, err := newDraft("name: x\nalgorithm: 3\n").set("algorithm.group_size", "4"); err == nil {
		t.Error("a scalar where a mapping is expected cannot be edited by the form")
	}
}

func TestScalarYAML(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"4": "4", "0.001": "0.001", "2e-4": "2e-4", "true": "true", "pico": "pico", "": `""`, "inf": "inf", "a: b": `"a: b"`, "# no": `"# no"`, "0x10": `"0x10"`} {
		got := scalarYAML(in)
		d := newDraft("k: " + got)
		v, ok := d.value("k")
		if !ok || (v != in && in != "2e-4") {
			t.Errorf("%q is written %s (like %s) and read back %q", in, got, want, v)
		}
	}
}

func FuzzDraft(f *testing.F) {
	f.Add(smallFile, "algorithm.group_size", "4")
	f.Add("a: [", "name", "x")
	f.Add("- 1\n- 2", "tasks", "[]")
	f.Add("name: &a x\nb: *a", "policy.pool.mode", "cross")
	f.Fuzz(func(t *testing.T, text, path, value string) {
		if len(text) > 4096 || len(path) > 200 {
			return
		}
		known := false
		for _, sec := range draftForm() {
			for _, fd := range sec.Fields {
				known = known || fd.Path == path
			}
		}
		d := newDraft(text)
		_, _, _ = d.pool()
		_ = draftValues(d, d, []string{"alfworld-train"})
		if !known {
			return
		}
		if next, err := d.set(path, scalarYAML(value)); err == nil && next.tree == nil && d.tree != nil {
			t.Fatalf("an edit broke the file:\n%q\n%q", text, next.text)
		}
	})
}

func ask(t *testing.T, s *site, yaml, path, value string) (draftAnswer, int) {
	t.Helper()
	w := s.post(t, "/runs/draft", url.Values{"yaml": {yaml}, "path": {path}, "value": {value}})
	var a draftAnswer
	check(t, json.Unmarshal(w.Body.Bytes(), &a))
	return a, w.Code
}

func TestDraftAnswers(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Researcher)
	quick, ok := runfile.Preset("quickstart")
	if !ok {
		t.Fatal("there is no quickstart")
	}
	a, code := ask(t, s, string(quick), "", "")
	if code != 200 || len(a.Problems) != 0 || a.Changed || a.Values["policy.pool.mode"] != "cross" || a.Values["mix:alfworld-train"] == "" {
		t.Fatalf("%d %+v", code, a)
	}
	for _, sec := range draftForm() {
		for _, f := range sec.Fields {
			if a.Values[f.Path] == "" {
				t.Errorf("the field %s shows nothing", f.Path)
			}
		}
	}
	if a, _ = ask(t, s, string(quick), "algorithm.group_size", "1"); len(a.Problems) == 0 || a.Problems[0].Path != "algorithm.group_size" || a.Problems[0].Line == 0 || !a.Changed {
		t.Errorf("%+v", a.Problems)
	}
	if a, _ = ask(t, s, string(quick), poolStale, "0.4"); !strings.Contains(a.YAML, "weight: 0.6") || len(a.Problems) != 0 {
		t.Errorf("%s %+v", a.YAML, a.Problems)
	}
	if a, _ = ask(t, s, string(quick), "preset", "quickstart-single"); a.Values["policy.pool.mode"] != "single" || len(a.Problems) != 0 {
		t.Errorf("%+v", a)
	}
	mix, err := s.SaveObject(t.Context(), experiment.Saved{Kind: "mix", Name: "m", Body: "- {task: alfworld-train, weight: 3}\n", AuthorID: s.user.ID})
	check(t, err)
	if a, _ = ask(t, s, string(quick), "saved:mix", "1"); a.Values["mix:alfworld-train"] != "3" || len(a.Problems) != 0 || mix.ID != 1 {
		t.Errorf("%+v", a)
	}
	for _, bad := range [][2]string{{"preset", "nope"}, {"no.such", "1"}, {"mix:unknown", "1"}, {"saved:pool", "1"}, {"saved:mix", "x"}, {"saved:mix", "99"}} {
		if _, code := ask(t, s, string(quick), bad[0], bad[1]); code != 400 && code != 404 {
			t.Errorf("%v answers %d", bad, code)
		}
	}
}

func TestNewRunWithoutScripts(t *testing.T) {
	t.Parallel()
	s := newSite(t, auth.Researcher)
	d := s.doc(t, "/runs/new", 200)
	if d.Find("input[name=preset][checked]").AttrOr("value", "") != "quickstart" || d.Find("#problems li").Length() != 0 {
		t.Fatal(d.Find("#problems").Text())
	}
	form := url.Values{}
	d.Find("#newrun input[name], #newrun textarea[name], #newrun select[name]").Each(func(_ int, el *goquery.Selection) {
		v := el.AttrOr("value", el.Text())
		if goquery.NodeName(el) == "select" {
			v = el.Find("option[selected]").AttrOr("value", "")
		}
		if el.AttrOr("type", "") != "radio" {
			form.Set(el.AttrOr("name", ""), v)
		}
	})
	form.Set("do", "apply")
	form.Set("name", "plain")
	form.Set("algorithm.group_size", "1")
	w := s.post(t, "/runs", form)
	d, err := goquery.NewDocumentFromReader(w.Body)
	check(t, err)
	if w.Code != 200 || d.Find(`[data-field="algorithm.group_size"] .error`).Text() == "" || !strings.Contains(d.Find("#yaml").Text(), "name: plain") {
		t.Fatalf("%d %s", w.Code, d.Find("#problems").Text())
	}
	form.Set("yaml", d.Find("#yaml").Text())
	form.Set("do", "queue")
	if w = s.post(t, "/runs", form); w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "group_size") {
		t.Fatalf("%d", w.Code)
	}
	form.Set("yaml", strings.Replace(form.Get("yaml"), "group_size: 1", "group_size: 4", 1))
	form.Set("experiment", "Fresh")
	if w = s.post(t, "/runs", form); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/runs/1" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	r, err := s.Run(t.Context(), 1)
	check(t, err)
	if r.Name != "plain" || r.Experiment != "Fresh" || r.Config.Algorithm.GroupSize != 4 {
		t.Errorf("%+v", r)
	}
	if d = s.doc(t, "/runs/new?fork=1", 200); d.Find(`input[name=forked_from]`).AttrOr("value", "") != "1" || !strings.Contains(d.Find("#yaml").Text(), "name: plain-fork") {
		t.Error(d.Find("#yaml").Text())
	}
	s.doc(t, "/runs/new?fork=77", 404)
	s.doc(t, "/runs/new?preset=nope", 400)
}
