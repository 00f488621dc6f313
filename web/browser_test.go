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

	"agentrl/internal/auth"
	"agentrl/internal/experiment"
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

// waitFor resolves once a condition holds in the page; the context bounds the wait.
func waitFor(condition string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](`new Promise(done => { const look = () => (`+condition+`) ? done(true) : setTimeout(look, 20); look() })`, chromedp.EvalAwaitPromise)
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
