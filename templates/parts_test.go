package templates

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/PuerkitoBio/goquery"
	"github.com/a-h/templ"

	"agentrl/internal/auth"
	"agentrl/internal/experiment"
	"agentrl/internal/trajectory"
)

// render writes a component and reads it back as a document.
func render(t testing.TB, c templ.Component) (*goquery.Document, string) {
	t.Helper()
	var b strings.Builder
	if err := c.Render(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	d, err := goquery.NewDocumentFromReader(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	return d, b.String()
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{Count(0), "0"}, {Count(999), "999"}, {Count(12430), "12,430"}, {Count(-1234567), "-1,234,567"},
		{Short(9999), "9,999"}, {Short(1_234_567), "1.2 M"}, {Short(45_600), "45.6 k"}, {Short(3_000_000_000), "3.0 G"},
		{Bytes(512), "512 B"}, {Bytes(3 << 20), "3.0 MiB"}, {Bytes(5 << 10), "5.0 KiB"}, {Bytes(2 << 30), "2.0 GiB"},
		{Fixed(0.5, 2), "0.50"}, {Fixed(-0.001, 2), "0.00"}, {Fixed(-0.2, 2), "-0.20"}, {Fixed(math.NaN(), 2), "–"}, {Fixed(math.Inf(1), 2), "–"},
		{Rate(-1), "…"}, {Rate(0.25), "0.250"}, {Reward(-2), "…"}, {Reward(-0.2), "-0.200"}, {Figure(0.00012345), "0.0001234"},
		{Span(250 * time.Millisecond), "250 ms"}, {Span(120 * time.Microsecond), "120 µs"}, {Span(192 * time.Second), "3 m 12 s"}, {Span(90 * time.Minute), "1 h 30 m"},
		{Span(75 * time.Hour), "3 d 3 h"}, {Span(-1), "–"}, {Span(0), "0 ms"},
		{TaskCode("alfworld-train"), "AF"}, {TaskCode("dbbench"), "DB"}, {TaskCode("x"), "??"}, {TaskCode("custom"), "CU"},
		{mixText([]experiment.TaskMix{{Task: "alfworld-train", Weight: 3}, {Task: "webshop", Weight: 1}}), "AF 75 % WS 25 %"}, {mixText(nil), ""},
		{poolText(experiment.Pool{Mode: "cross", Members: []experiment.Member{{Policy: "current", Weight: 3}, {Policy: "stale", Weight: 1}}}), "cross: C 75 % S 25 %"},
		{poolText(experiment.Pool{Mode: "single"}), "single"}, {letterShares([]string{"CCS", "C"}), "C 75 % S 25 %"}, {letterShares(nil), "–"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestAgo(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{time.Second: "now", 14 * time.Second: "14 s ago", 3 * time.Minute: "3 m ago", 5 * time.Hour: "5 h ago", 72 * time.Hour: "3 d ago", -time.Minute: "now"} {
		if got := Ago(now, now.Add(-d)); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
	if got := Ago(now, time.Time{}); got != "–" {
		t.Error(got)
	}
	d, _ := render(t, When(now, now.Add(-time.Minute)))
	if s := d.Find("time"); s.Text() != "1 m ago" || s.AttrOr("title", "") != "2026-05-01 11:59:00 UTC" {
		t.Error(s.Text(), s.AttrOr("title", ""))
	}
}

func TestRunWords(t *testing.T) {
	t.Parallel()
	r := experiment.Run{State: experiment.Running, Progress: experiment.Progress{Phase: experiment.PhaseRL, Step: 128, Steps: 300, StepSeconds: 2}}
	if got := RunDetail(r); got != "step 128 of 300" {
		t.Error(got)
	}
	if got := Remaining(r); got != 344*time.Second {
		t.Error(got)
	}
	r.Progress.Phase, r.Progress.WarmupStep, r.Progress.WarmupSteps = experiment.PhaseWarmup, 4, 9
	if got := RunDetail(r); got != "warm start 4 of 9" {
		t.Error(got)
	}
	if v, m := Done(r); v != 4 || m != 9 || Remaining(r) >= 0 {
		t.Error(v, m, Remaining(r))
	}
	r.State = experiment.Queued
	if got := RunDetail(r); got != "" || Remaining(r) >= 0 {
		t.Error(got)
	}
}

func TestConfirmPostsWithoutScripts(t *testing.T) {
	t.Parallel()
	d, _ := render(t, Confirm("c1", "Stop", "danger", "/runs/1/stop", "Sure?", "Stop it"))
	if f := d.Find(`form[data-confirm="c1"][method="post"][action="/runs/1/stop"] button[type=submit]`); f.Text() != "Stop" {
		t.Error("the plain form is missing")
	}
	if f := d.Find(`dialog#c1 form[method="post"][action="/runs/1/stop"] button.primary.danger`); f.Text() != "Stop it" {
		t.Error("the dialog's form is missing")
	}
}

func TestFieldErrors(t *testing.T) {
	t.Parallel()
	d, _ := render(t, InputField(Field{Name: "a.b[0]", Label: "L", Value: `"><script>`, Error: "is <wrong>", Hint: "hint"}))
	in := d.Find("input")
	note := d.Find("#" + in.AttrOr("aria-describedby", "none"))
	if in.AttrOr("aria-invalid", "") != "true" || in.AttrOr("value", "") != `"><script>` || strings.TrimSpace(note.Text()) != "is <wrong>" || d.Find("script").Length() != 0 {
		t.Error(d.Html())
	}
	if d.Find("label").AttrOr("for", "") != in.AttrOr("id", "-") {
		t.Error("the label does not belong to the field")
	}
	d, _ = render(t, InputField(Field{Name: "m", Type: "select", Value: "b", Error: "no", Options: []Option{{"a", "A"}, {"b", "B"}}}))
	if d.Find("option[selected]").AttrOr("value", "") != "b" || d.Find("select").AttrOr("aria-invalid", "") != "true" {
		t.Error(d.Html())
	}
}

func TestFrame(t *testing.T) {
	t.Parallel()
	p := Page{Title: "T", Nav: "runs", User: "ada", Role: auth.Viewer, Nonce: "n0nce", Topics: []string{"runs"}, Crumbs: []Crumb{{Text: "A", Href: "/a"}, {Text: "<b>"}},
		Flash: Flash{Kind: "bad", Text: "no <good>", ID: "r1"}, Keys: []Key{{"j", "down"}}}
	d, html := render(t, Layout(p))
	if d.Find(".rail [aria-current=page]").Text() != "Runs" || d.Find(".crumbs [aria-current=page]").Text() != "<b>" {
		t.Error(html)
	}
	if d.Find(`.flash.bad[role=alert]`).Length() != 1 || d.Find("#connection [role=status]").Length() != 1 || d.Find("a.skip").AttrOr("href", "") != "#main" {
		t.Error(html)
	}
	if d.Find("#keys dt").First().Text() != "j" {
		t.Error("the page's own keys come first")
	}
	d.Find("script").Each(func(_ int, s *goquery.Selection) {
		if s.AttrOr("nonce", "") != "n0nce" {
			t.Error("a script without the nonce")
		}
	})
	d, _ = render(t, Bare(p))
	if d.Find(".rail").Length() != 0 || d.Find("main").Length() != 1 {
		t.Error("a bare page has no rail")
	}
	if a := HX("n", "get", "/x", "target", "#y"); a["hx-nonce"] != "n" || a["hx-get"] != "/x" || a["hx-target"] != "#y" || len(a) != 3 {
		t.Error(a)
	}
}

func TestReveal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\ttext\n日本": "plain\ttext\n日本", "a\x1b[31m": "a\\x1B[31m", "\u202eevil": "\\u202Eevil", "\xff": "\\xFF", "z\u200bw": "z\\u200Bw",
		"\x00": "\\x00", "": "", "\U000e0041": "\\U000E0041", "\u0085": "\\u0085", "\r\n": "\\x0D\n",
	} {
		if got := Visible(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	d, html := render(t, Exact("obs", "  <img src=x onerror=alert(1)>\u202e  "))
	if d.Find("img").Length() != 0 || d.Find(".obs").Text() != "  <img src=x onerror=alert(1)>\\u202E  " || d.Find(".ctl").AttrOr("title", "") == "" {
		t.Error(html)
	}
}

func FuzzReveal(f *testing.F) {
	for _, s := range []string{"", "a\x1b[0m", "\u202e\xff<script>", strings.Repeat("\x00", 9)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := Visible(s)
		if !utf8.ValidString(v) {
			t.Fatalf("%q became invalid", s)
		}
		for _, r := range v {
			if (unicode.IsControl(r) && r != '\n' && r != '\t') || unicode.Is(unicode.Bidi_Control, r) {
				t.Fatalf("%q keeps %U", s, r)
			}
		}
	})
}

func TestArgumentText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"action":"go to drawer 1"}`: "go to drawer 1", `{"a":1,"b":"x"}`: `a=1, b="x"`, `{"n":2}`: "n=2", `{}`: "", `[1]`: "[1]", `not json`: "not json", `{"a":`: `{"a":`, ``: "",
	} {
		if got := ArgumentText(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	if got := PrettyJSON(`{"a":[1]}`); got != "{\n  \"a\": [\n    1\n  ]\n}" {
		t.Error(got)
	}
	if got := PrettyJSON("{broken"); got != "{broken" {
		t.Error(got)
	}
}

func FuzzArgumentText(f *testing.F) {
	f.Add(`{"a":"b"}`)
	f.Add(`{"a":{"b":[1,2,null]},"a":2}`)
	f.Fuzz(func(t *testing.T, s string) { _, _ = ArgumentText(s), PrettyJSON(s) })
}

func TestRewardBars(t *testing.T) {
	t.Parallel()
	d, html := render(t, RewardBars([]float64{1, 0, -0.2, math.NaN(), 5}))
	if n := d.Find("rect").Length(); n != 5 || d.Find("rect.neg").Length() != 1 || d.Find("[style]").Length() != 0 {
		t.Error(html)
	}
	if d.Find("svg").AttrOr("aria-label", "") != "rewards 1.00, 0.00, -0.20, –, 5.00" {
		t.Error(d.Find("svg").AttrOr("aria-label", ""))
	}
}

func TestLetters(t *testing.T) {
	t.Parallel()
	d, _ := render(t, Letters(strings.Repeat("CS", 10)))
	if d.Find(".p.C").Length() != 8 || d.Find(".p.more").Text() != "+4" || LetterClass("Z") != "X" {
		t.Error(d.Html())
	}
}

func TestTurnFactsNameTheLogProb(t *testing.T) {
	t.Parallel()
	tr := trajectory.Trajectory{Step: 9, Phase: "rl", Logprobs: []float32{0, -1, -3}}
	u := trajectory.Turn{PolicyID: "current", PolicyVersion: 7, TokenStart: 1, TokenEnd: 3, Trainable: false, Finish: trajectory.FinishLength}
	got := strings.Join(turnFacts(tr, u), "; ")
	for _, want := range []string{"current v7", "staleness 2", "tokens 2", "ended by length", "not trained on", "mean log-prob -2.000"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}
