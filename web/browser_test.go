package web

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"agentrl/internal/auth"
	"agentrl/internal/experiment"
	"agentrl/internal/live"
	"agentrl/internal/store"
)

// browser starts a Chromium for the test; AGENTRL_TEST_CHROMIUM names the binary.
func browser(t *testing.T) context.Context {
	t.Helper()
	bin := os.Getenv("AGENTRL_TEST_CHROMIUM")
	if bin == "" {
		t.Skip("pages are not opened in a browser: AGENTRL_TEST_CHROMIUM is not set to a Chromium binary")
	}
	opts := []chromedp.ExecAllocatorOption{chromedp.ExecPath(bin), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.NoFirstRun}
	for _, f := range []string{"no-sandbox", "disable-gpu", "disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage", "hide-scrollbars"} {
		opts = append(opts, chromedp.Flag(f, true))
	}
	actx, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), opts...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(actx)
	t.Cleanup(cancel)
	check(t, chromedp.Do(ctx)) // starts it without a deadline
	return ctx
}

// waitFor returns once a condition holds in the page, also across a navigation; the context bounds the wait.
func waitFor(condition string) chromedp.Action[chromedp.Void] {
	look := chromedp.Evaluate[chromedp.Void](`new Promise(done => { const look = () => (`+condition+`) ? done(true) : setTimeout(look, 20); look() })`, chromedp.EvalAwaitPromise)
	return func(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
		for {
			v, err := look(ctx, t)
			if err == nil || ctx.Err() != nil || !leftPage(err) {
				return v, err
			}
		}
	}
}

// leftPage reports whether a script ended because its page was left.
func leftPage(err error) bool {
	for _, s := range []string{"navigated or closed", "context was destroyed", "Cannot find context", "was collected"} {
		if strings.Contains(err.Error(), s) {
			return true
		}
	}
	return false
}

// complaints gathers what the browser says against the pages: policy violations, script errors, failed loads.
type complaints struct {
	mu   sync.Mutex
	list []string
}

func (c *complaints) listen(ctx context.Context) error {
	return chromedp.Listen(ctx, func(ev any) {
		switch e := ev.(type) {
		case *runtime.EventExceptionThrown:
			if e.ExceptionDetails != nil {
				c.add(fmt.Sprintf("exception: %+v", *e.ExceptionDetails))
			}
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" || e.Type == "warning" {
				var parts []string
				for _, a := range e.Args {
					parts = append(parts, string(a.Value)+" "+a.Description)
				}
				c.add("console: " + strings.Join(parts, " "))
			}
		case *log.EventEntryAdded:
			if e.Entry.Level == "error" || e.Entry.Level == "warning" {
				c.add(fmt.Sprintf("log: %s %s", e.Entry.Text, e.Entry.URL))
			}
		}
	})
}

func (c *complaints) add(s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, s)
}

func (c *complaints) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.list
	c.list = nil
	return out
}

const watchPolicy = `document.addEventListener("securitypolicyviolation", e => console.error("policy violated: " + e.violatedDirective + " " + e.blockedURI + " " + e.sample))`

// settled is true once charts are drawn (or say why not) and nothing is being loaded.
const settled = `[...document.querySelectorAll("[data-chart]")].every(f => f.getBoundingClientRect().top > innerHeight + 150 || f.querySelector(".legend").textContent !== "") && document.readyState === "complete"`

const axeRun = `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.map(v => v.id + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 140) + " | " + n.failureSummary.replace(/\s+/g, " ").slice(0, 220)).join(" ;; ")))`

// TestPagesInBrowser opens every page in both schemes, wide and narrow: no policy violation, no script error, nothing
// that axe objects to. AGENTRL_TEST_SHOTS names a folder for pictures of each.
func TestPagesInBrowser(t *testing.T) {
	ctx := browser(t)
	axe, err := os.ReadFile(os.Getenv("AGENTRL_TEST_AXE"))
	if err != nil {
		t.Fatalf("AGENTRL_TEST_AXE must name axe.min.js: %v", err)
	}
	s := newSite(t, auth.Admin)
	s.fill(t)
	var c complaints
	check(t, c.listen(ctx))
	_, err = chromedp.Call(ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: watchPolicy})
	check(t, err)
	shots := os.Getenv("AGENTRL_TEST_SHOTS")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1440, 320} {
			for name, path := range s.pages() {
				where := fmt.Sprintf("%s (%s, %d px)", name, scheme, width)
				one, cancel := context.WithTimeout(ctx, 30*time.Second)
				_, err := chromedp.Call(one, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
				if err == nil {
					err = chromedp.Do(one, chromedp.EmulateViewport(width, 900), chromedp.Navigate(s.http.URL+path), waitFor(settled),
						chromedp.Evaluate[chromedp.Void](string(axe)))
				}
				var found []string
				if err == nil {
					found, err = chromedp.Run(one, chromedp.Evaluate[[]string](axeRun, chromedp.EvalAwaitPromise))
				}
				if err != nil {
					t.Errorf("%s: %v", where, err)
				}
				overflow, err := chromedp.Run(one, chromedp.Evaluate[bool](`document.documentElement.scrollWidth > innerWidth`))
				if err != nil {
					t.Errorf("%s: %v", where, err)
				}
				for _, v := range found {
					t.Errorf("%s: axe: %s", where, v)
				}
				if overflow {
					t.Errorf("%s: the page is wider than the screen", where)
				}
				for _, v := range c.take() {
					if name == "missing" && strings.Contains(v, "404") {
						continue // the page itself
					}
					t.Errorf("%s: %s", where, v)
				}
				if shots != "" {
					if pic, err := chromedp.Run(one, chromedp.CaptureScreenshot()); err == nil {
						_ = os.WriteFile(filepath.Join(shots, fmt.Sprintf("%s-%s-%d.png", name, scheme, width)), pic, 0o600)
					}
				}
				cancel()
			}
		}
	}
}

// fill makes what the pages show: a running run with history, finished, stopped, failed and queued ones.
func (s *site) fill(t testing.TB) {
	t.Helper()
	s.addHistory(t, s.addRun(t, "quickstart"), 120, 128, experiment.Running)
	s.addHistory(t, s.addRun(t, "no-stale-seed-1"), 60, 60, experiment.Finished)
	s.addHistory(t, s.addRun(t, "no-stale-seed-2"), 60, 20, experiment.Failed)
	s.addHistory(t, s.addRun(t, "stale-half"), 60, 30, experiment.Stopped)
	s.addHistory(t, s.addRun(t, "warming-up"), 40, 0, experiment.Running)
	s.addRun(t, "next-in-line")
	_, err := s.SaveObject(t.Context(), experiment.Saved{Kind: "mix", Name: "alfworld only", Body: "- {task: alfworld-train, weight: 1}", AuthorID: s.user.ID})
	check(t, err)
}

// pages are all addresses that the test visits.
func (s *site) pages() map[string]string {
	return map[string]string{
		"runs": "/runs", "runs-none": "/runs?q=nothing-like-this", "experiments": "/experiments", "new-run": "/runs/new", "fork": "/runs/new?fork=1",
		"overview": "/runs/1", "overview-warm": "/runs/5", "overview-queued": "/runs/6", "overview-stopped": "/runs/4",
		"rollouts": "/runs/1/rollouts", "groups": "/runs/1/groups?sort=-spread", "evaluations": "/runs/1/evaluations",
		"config": "/runs/1/config", "attempts": "/runs/1/attempts", "log": "/runs/1/log",
		"trajectory": "/trajectories/1-1-6-3", "trajectory-live": "/trajectories/1-1-999-0", "missing": "/runs/999",
		"saved": "/saved", "queue": "/queue", "workers": "/workers", "settings": "/settings", "users": "/settings/users",
	}
}

// TestPagesFollowARun watches the page of a run while things happen to it, as a user would.
func TestPagesFollowARun(t *testing.T) {
	ctx := browser(t)
	s := newSite(t, auth.Researcher)
	run := s.addRun(t, "watched")
	s.addHistory(t, run, 10, 5, experiment.Running)
	var c complaints
	check(t, c.listen(ctx))
	_, err := chromedp.Call(ctx, cdppage.AddScriptToEvaluateOnNewDocument, cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: watchPolicy})
	check(t, err)
	one, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	do := func(what string, steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(one, steps...); err != nil {
			body, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText.slice(0, 1500)`))
			t.Fatalf("%s: %v\n%s\n%v", what, err, body, c.take())
		}
	}
	do("the page opens and is live", chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.http.URL+"/runs/1"),
		waitFor(settled), waitFor(`document.querySelector("#connection-text")?.textContent === "live"`))

	publish := func(topic string, kind live.Kind, items ...any) {
		t.Helper()
		check(t, s.stream.Publish(t.Context(), topic, kind, items...))
	}
	v := 0.875
	publish(live.StatusTopic(run.ID), live.State, live.StatusItem{RunID: run.ID, State: "running", Phase: "rl", Attempt: 1, Step: 6, Steps: 300, ETA: 75, InFlight: 64, Waiting: 3, Reward: 0.5, Pass: v, Eval: -1})
	publish(live.MetricsTopic(run.ID), live.Delta, live.MetricItem{Metric: "pass_rate", Attempt: 1, Step: 6, Time: float64(time.Now().Unix()), Value: &v})
	publish(live.RolloutsTopic(run.ID), live.Delta, live.RolloutItem{ID: "1-1-77-2", Group: 77, Member: 2, Phase: "rl", Task: "alfworld-train", Sample: 31, Letters: "CSC", Turn: 3, Status: "running", Started: float64(time.Now().Unix())})
	do("state, numbers, curve and rollouts move",
		waitFor(`document.querySelector("#run-status")?.textContent.includes("step 6 of 300")`),
		waitFor(`document.querySelector("#run-eta").textContent === "about 1 m 15 s left"`),
		waitFor(`document.querySelector("[data-now=in_flight]").textContent === "64"`),
		waitFor(`document.querySelector("#chart-pass").chart.x.at(-1) === 6`),
		waitFor(`document.querySelector("#rollouts li[data-id='1-1-77-2'] .letters").textContent === "CSC"`))
	r := 1.0
	publish(live.RolloutsTopic(run.ID), live.Delta, live.RolloutItem{ID: "1-1-77-2", Group: 77, Member: 2, Phase: "rl", Task: "alfworld-train", Sample: 31, Letters: "CSCC", Turn: 4, Status: "completed", Reward: &r, Started: float64(time.Now().Unix())})
	do("a rollout ends in place", waitFor(`document.querySelector("#rollouts li[data-id='1-1-77-2'] .state").textContent === "1.0 pass"`))

	do("the keyboard reads a chart", chromedp.Evaluate[chromedp.Void](`document.querySelector("#chart-pass .plot").focus()`), chromedp.KeyEvent(kb.ArrowLeft),
		waitFor(`/^training, step 5: 0\.\d+/.test(document.querySelector("#chart-pass [role=status]").textContent)`))
	do("the numbers are a table", chromedp.Evaluate[chromedp.Void](`document.querySelector("#chart-pass details").open = true`),
		waitFor(`document.querySelectorAll("#chart-pass tbody tr").length === 6 && document.querySelector("#chart-pass tbody td:nth-child(2)").textContent === "0.875"`))

	// Stop is asked for in a dialog and reaches the store.
	do("stop asks first", chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`), chromedp.KeyEvent("s"), waitFor(`document.querySelector("#confirm-stop").open`),
		chromedp.Click(chromedp.CSS("#confirm-stop button.primary")), waitFor(`document.querySelector(".flash.good") !== null`),
		waitFor(`document.querySelector("#run-status")?.textContent.includes("stopping")`))
	now, err := s.Run(t.Context(), run.ID)
	check(t, err)
	if now.State != experiment.Stopping || now.StopRequested != "stop" {
		t.Errorf("the run is %s with %q asked for", now.State, now.StopRequested)
	}

	do("tokens are shown on demand", chromedp.Navigate(s.http.URL+"/trajectories/1-1-2-1"), chromedp.KeyEvent("t"), waitFor(`document.querySelectorAll("#tokens .tok").length === 154`),
		chromedp.Evaluate[chromedp.Void](`document.querySelector("#tokens .tok[tabindex]").focus()`), waitFor(`document.querySelector("#tokens-readout").textContent.includes("log-prob -")`))
	do("j and k move along turns", chromedp.Evaluate[chromedp.Void](`document.activeElement.blur()`), chromedp.KeyEvent("j"), chromedp.KeyEvent("j"), waitFor(`document.activeElement?.id === "turn-2"`))
	do("] opens the next member", chromedp.KeyEvent("]"), waitFor(`location.pathname === "/trajectories/1-1-2-2"`))

	// An episode that is being played shows its turns as they are written.
	do("an episode is live", chromedp.Navigate(s.http.URL+"/trajectories/1-1-500-0"), waitFor(`document.querySelector("#connection-text")?.textContent === "live"`))
	publish(live.TrajectoryTopic("1-1-500-0"), live.Delta,
		live.TurnItem{ID: "1-1-500-0", Open: []byte(`[{"role":"user","content":"<b>go</b>"}]`), Status: "running"},
		live.TurnItem{ID: "1-1-500-0", Turn: []byte(`{"index":0,"letter":"S","policy_id":"stale","policy_version":4,"token_start":2,"token_end":9,"message":{"role":"assistant","tool_calls":[{"id":"1","name":"act","arguments":"{\"action\":\"look\"}"}]},"replies":[{"role":"tool","content":"You see\u202e nothing."}]}`), Status: "running"})
	do("its turns appear", waitFor(`document.querySelector("#turn-0 .call")?.textContent === "act(look)"`), waitFor(`document.querySelector("#opening .obs").textContent === "<b>go</b>"`),
		waitFor(`document.querySelector("#turn-0 .obs").textContent === "You see\\u202E nothing."`))
	// The worker lets go of the run: the head follows without a reload.
	do("live again", chromedp.Navigate(s.http.URL+"/runs/1"), waitFor(`document.querySelector("#connection-text")?.textContent === "live"`))
	check(t, s.RequestStop(t.Context(), run.ID, "cancel"))
	s.release(t, run.ID, experiment.Cancelled)
	publish(live.RunsTopic, live.Delta, live.Changed{ID: "1", State: "cancelled"})
	do("the end is shown with what can be done now", waitFor(`document.querySelector("#run-status")?.textContent.includes("cancelled") && document.querySelector("form[action='/runs/1/resume']") !== null`))
	for _, v := range c.take() {
		t.Error(v)
	}
}

// TestNewRunInBrowser makes a run with the form beside its file.
func TestNewRunInBrowser(t *testing.T) {
	ctx := browser(t)
	s := newSite(t, auth.Researcher)
	var c complaints
	check(t, c.listen(ctx))
	one, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	change := func(name, value string) chromedp.Action[chromedp.Void] {
		return chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(() => { const el = document.querySelector("#newrun").elements.namedItem(%q); el.value = %q; el.dispatchEvent(new Event("change", {bubbles: true})) })()`, name, value))
	}
	do := func(what string, steps ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(one, steps...); err != nil {
			body, _ := chromedp.Run(ctx, chromedp.Evaluate[string](`document.querySelector("#yaml")?.value + document.querySelector("#problems")?.innerText`))
			t.Fatalf("%s: %v\n%s\n%v", what, err, body, c.take())
		}
	}
	valid := `document.querySelector("#draft-state").textContent === "the file is valid"`
	do("the preset is valid", chromedp.Navigate(s.http.URL+"/runs/new"), waitFor(valid))
	do("a field is written into the file", change("algorithm.group_size", "4"), waitFor(`/group_size: 4\b/.test(document.querySelector("#yaml").value)`), waitFor(valid))
	do("a wrong value is named at its field and cannot be queued", change("algorithm.group_size", "1"),
		waitFor(`document.querySelector("[data-field='algorithm.group_size'] .error") !== null && document.querySelector("#queue").disabled`))
	do("mended", change("algorithm.group_size", "8"), waitFor(valid), waitFor(`!document.querySelector("#queue").disabled`))
	do("the pool's mode changes its members", change("policy.pool.mode", "single"), waitFor(`/mode: single/.test(document.querySelector("#yaml").value) && !/stale/.test(document.querySelector("#yaml").value.split("algorithm")[0])`), waitFor(valid))
	do("a changed file fills the fields", chromedp.Evaluate[chromedp.Void](`(() => { const y = document.querySelector("#yaml"); y.value = y.value.replace(/^name: .*$/m, "name: by-hand"); y.dispatchEvent(new Event("input", {bubbles: true})) })()`),
		waitFor(`document.querySelector("#newrun").elements.namedItem("name").value === "by-hand"`), waitFor(valid))
	do("an unknown key is named with its line", chromedp.Evaluate[chromedp.Void](`(() => { const y = document.querySelector("#yaml"); y.value += "\nwhat_is_this: 1\n"; y.dispatchEvent(new Event("input", {bubbles: true})) })()`),
		waitFor(`document.querySelector("#problems li")?.textContent.includes("what_is_this")`))
	do("queued", chromedp.Evaluate[chromedp.Void](`(() => { const y = document.querySelector("#yaml"); y.value = y.value.replace("\nwhat_is_this: 1\n", ""); y.dispatchEvent(new Event("input", {bubbles: true})) })()`),
		waitFor(valid), chromedp.Click(chromedp.CSS("#queue")), waitFor(`/^\/runs\/\d+$/.test(location.pathname) && document.querySelector("#run-status")?.textContent.includes("queued")`))
	list, err := s.ListRuns(t.Context(), store.RunFilter{Limit: 10})
	check(t, err)
	if len(list.Runs) != 1 || list.Runs[0].Name != "by-hand" || len(s.enq.runs) != 1 {
		t.Errorf("runs %+v, handed to the queue %v", list.Runs, s.enq.runs)
	}
	for _, v := range c.take() {
		t.Error(v)
	}
}
