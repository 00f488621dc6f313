package web

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"

	"agentrl/internal/auth"
)

// TestCrossOrigin holds that no other site can make a signed-in browser change anything.
func TestCrossOrigin(t *testing.T) {
	t.Parallel()
	w := populated(t)
	own := w.http.URL
	for _, c := range []struct {
		name   string
		header map[string]string
		ok     bool
	}{
		{"cross-site", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, false},
		{"same-site", map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "https://other.example.org"}, false},
		{"old browser, foreign origin", map[string]string{"Origin": "https://evil.example"}, false},
		{"null origin", map[string]string{"Origin": "null", "Sec-Fetch-Site": "cross-site"}, false},
		{"own page", map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": own}, true},
		{"old browser, own origin", map[string]string{"Origin": own}, true},
	} {
		page := w.do(call{method: "POST", path: "/saved/mix/try", cookie: w.session(auth.Researcher), body: form("body", "x"), header: c.header})
		json := w.do(call{method: "POST", path: "/api/v1/experiments", cookie: w.session(auth.Researcher), body: `{"name":"by ` + c.name + `"}`, header: c.header})
		login := w.do(call{method: "POST", path: "/login", body: form("email", "viewer@example.org", "password", goodPassword), header: c.header})
		if c.ok {
			page.want(t, 400, "Dry run") // refused for its text only
			json.want(t, 201)
			login.want(t, 303)
		} else {
			page.want(t, 403, "came from another site")
			json.want(t, 403, `"code":"forbidden"`)
			login.want(t, 403)
		}
	}
	w.do(call{method: "POST", path: "/api/v1/experiments", role: auth.Researcher, body: `{"name":"by token"}`,
		header: map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}}).want(t, 201)
	w.do(call{method: "POST", path: "/api/v1/experiments", cookie: w.session(auth.Researcher), body: `{"name":"by bad token"}`,
		header: map[string]string{"Authorization": "Bearer nonsense"}}).want(t, 401)
	w.do(call{method: "GET", path: "/api/v1/me", header: map[string]string{"Authorization": "Basic YTpi"}}).want(t, 401, "use Bearer")
}

var nonceOf = regexp.MustCompile(`'nonce-([A-Za-z0-9_-]{22})'`)

// TestHeaders holds the headers of pages, API and static files, and that nonces are fresh.
func TestHeaders(t *testing.T) {
	t.Parallel()
	w := populated(t)
	ck := w.session(auth.Admin)
	seen := map[string]bool{}
	for _, path := range []string{"/login", "/runs", "/settings", "/nothing", "/api/v1/me", "/healthz", w.srv.assets.URL("css/app.css")} {
		a := w.do(call{method: "GET", path: path, cookie: ck})
		csp := a.Header.Get("Content-Security-Policy")
		m := nonceOf.FindStringSubmatch(csp)
		if m == nil || seen[m[1]] {
			t.Fatalf("%s: no fresh nonce in %q", path, csp)
		}
		seen[m[1]] = true
		want := "default-src 'none'; script-src 'nonce-N' 'strict-dynamic'; style-src 'self' 'nonce-N'; connect-src 'self'; img-src 'self' data:; font-src 'self'; " +
			"base-uri 'none'; object-src 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types htmx"
		if got := strings.ReplaceAll(csp, m[1], "N"); got != want {
			t.Errorf("%s: policy\n%s\nwant\n%s", path, got, want)
		}
		for k, v := range map[string]string{"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "Strict-Transport-Security": ""} {
			if got := a.Header.Get(k); got != v {
				t.Errorf("%s: %s is %q, want %q", path, k, got, v)
			}
		}
		if a.Header.Get("Permissions-Policy") == "" || a.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: headers %v", path, a.Header)
		}
		if strings.Contains(a.Header.Get("Content-Type"), "html") || strings.Contains(path, "/api/") {
			if got := a.Header.Get("Cache-Control"); got != "no-store" {
				t.Errorf("%s: Cache-Control %q", path, got)
			}
		}
	}
	a := w.do(call{method: "GET", path: w.srv.assets.URL("css/app.css")})
	if got := a.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
		t.Errorf("a hashed file has Cache-Control %q", got)
	}
	w.do(call{method: "GET", path: "/static/css/app.css", header: map[string]string{"If-None-Match": a.Header.Get("ETag")}}).want(t, 304)
	w.do(call{method: "GET", path: "/static/../web/openapi.yaml"}).want(t, 404)
}

// TestPagesCarryTheNonce walks every page without parameters: scripts and htmx elements carry the response's nonce, and
// nothing is inline.
func TestPagesCarryTheNonce(t *testing.T) {
	t.Parallel()
	w := populated(t)
	w.recorded(w.run("<script>alert('ex')</script>", "run"))
	ck := w.session(auth.Admin)
	n := 0
	for _, rt := range w.srv.table {
		if rt.Method != http.MethodGet || rt.Kind != page || strings.ContainsAny(rt.Path, "*") {
			continue
		}
		path := strings.NewReplacer(":id", "1", ":name", "none", ":token", "wrong").Replace(rt.Path)
		if strings.HasPrefix(path, "/trajectories/") {
			path = strings.Replace(path, "/1", "/1-1-0-0", 1)
		}
		a := w.do(call{method: "GET", path: path, cookie: ck})
		if a.StatusCode >= 300 && a.StatusCode < 400 {
			continue
		}
		if a.StatusCode >= 500 {
			t.Errorf("%s: %d: %.300s", path, a.StatusCode, a.text)
		}
		n++
		m := nonceOf.FindStringSubmatch(a.Header.Get("Content-Security-Policy"))
		doc, err := goquery.NewDocumentFromReader(strings.NewReader(a.text))
		check(t, err)
		doc.Find("*").Each(func(_ int, el *goquery.Selection) {
			name := goquery.NodeName(el)
			if v, _ := el.Attr("nonce"); name == "script" && v != m[1] {
				t.Errorf("%s: a script without the nonce", path)
			}
			for _, at := range el.Nodes[0].Attr {
				switch {
				case strings.HasPrefix(at.Key, "on"), at.Key == "style":
					t.Errorf("%s: <%s %s=%q> is inline", path, name, at.Key, at.Val)
				case strings.HasPrefix(at.Key, "hx-") && at.Key != "hx-nonce":
					if v, _ := el.Attr("hx-nonce"); v != m[1] {
						t.Errorf("%s: <%s %s> without the nonce", path, name, at.Key)
					}
				case at.Key == "href" && strings.HasPrefix(strings.ToLower(strings.TrimSpace(at.Val)), "javascript:"):
					t.Errorf("%s: a javascript link", path)
				}
			}
		})
		if strings.Contains(a.text, "<script>alert") {
			t.Errorf("%s: hostile text is not escaped", path)
		}
		if got := doc.Find("h1").Length(); got != 1 {
			t.Errorf("%s: %d first headings", path, got)
		}
		if title := doc.Find("title").Text(); title == "" {
			t.Errorf("%s: no title", path)
		}
	}
	if n < 20 {
		t.Errorf("only %d pages were seen", n)
	}
}

// TestSavedPages edits, tries and shows mixes and pools in forms.
func TestSavedPages(t *testing.T) {
	t.Parallel()
	w := populated(t)
	ck := w.session(auth.Researcher)
	w.do(call{method: "GET", path: "/saved", cookie: ck}).want(t, 200, "There are none yet", "New task mix")
	w.do(call{method: "GET", path: "/saved", cookie: w.session(auth.Viewer)}).want(t, 200, "!New task mix")
	w.do(call{method: "GET", path: "/saved/new?kind=pool", cookie: ck}).want(t, 200, "mode: cross")
	mix := "- {task: alfworld-train, weight: 1}\n- {task: alfworld-valid, weight: 1}\n"
	w.do(call{method: "POST", path: "/saved/mix/try", cookie: ck, body: form("body", mix)}).want(t, 200, "50.0 %", ">250<") // 1000 samples, 4 groups: 250
	w.do(call{method: "POST", path: "/saved/mix", cookie: ck, body: form("name", "half & half", "body", "- {task: moon, weight: 1}")}).want(t, 400, "moon", "half &amp; half")
	w.do(call{method: "POST", path: "/saved/mix", cookie: ck, body: form("name", "half & half", "body", mix, "note", "<b>n</b>")}).want(t, 303)
	w.do(call{method: "POST", path: "/saved/mix", cookie: ck, body: form("name", "half & half", "body", mix, "note", "second")}).want(t, 303)
	w.do(call{method: "POST", path: "/saved/pool", cookie: ck, body: form("name", "solo", "body", "mode: single\nmembers: [{policy: current, weight: 1}]\n")}).want(t, 303)
	w.do(call{method: "GET", path: "/saved", cookie: ck}).want(t, 200, "half &amp; half", "second", "!<b>n</b>", "solo")
	w.do(call{method: "GET", path: "/saved/mix/half%20&%20half", cookie: ck}).want(t, 200, "version 2 of 2", "Save as version 3", "The researcher", "&lt;b&gt;n&lt;/b&gt;")
	w.do(call{method: "GET", path: "/saved/mix/half%20&%20half?version=1", cookie: ck}).want(t, 200, "version 1 of 2")
	w.do(call{method: "GET", path: "/saved/mix/half%20&%20half?version=9", cookie: ck}).want(t, 404, "no version 9")
	w.do(call{method: "GET", path: "/saved/dry-run?mix=1&pool=3&batch_prompts=4&group_size=2&turns=3&seed=7", cookie: ck}).want(t, 200, "8 trajectories", "alfworld-train #", "100.0 %")
	w.do(call{method: "GET", path: "/saved/dry-run?mix=3", cookie: ck}).want(t, 400, "choose one of the list")
	w.do(call{method: "GET", path: "/saved/dry-run?mix=1&turns=1000", cookie: ck}).want(t, 400, "from 1 to 100")
}

// TestQueueAndWorkers finds jobs by number and state.
func TestQueueAndWorkers(t *testing.T) {
	t.Parallel()
	w := populated(t)
	ck := w.session(auth.Viewer)
	w.do(call{method: "GET", path: "/queue", cookie: ck}).want(t, 200, "There are none yet", "does not answer now")
	w.do(call{method: "GET", path: "/workers", cookie: ck}).want(t, 200, "No worker has reported")
	w.recorded(w.run("e", "<i>busy</i>"))
	w.run("e", "waiting")
	w.do(call{method: "GET", path: "/queue", cookie: ck}).want(t, 200, "&lt;i&gt;busy&lt;/i&gt;", "waiting", "1 pending · 1 active", "!Cancel run")
	w.do(call{method: "GET", path: "/queue", cookie: w.session(auth.Researcher)}).want(t, 200, "Cancel run")
	w.do(call{method: "GET", path: "/queue?state=active", cookie: ck}).want(t, 200, "busy", "!waiting</a>")
	w.do(call{method: "GET", path: "/queue?find=2", cookie: ck}).want(t, 200, "waiting", "!busy&lt;/i&gt;</a>")
	w.do(call{method: "GET", path: "/queue?find=zzz", cookie: ck}).want(t, 200, "No job matches")
	w.do(call{method: "GET", path: "/queue?state=idle", cookie: ck}).want(t, 400, "is not a state")
	w.do(call{method: "GET", path: "/workers", cookie: ck}).want(t, 200, "w-1", "busy", "1 of 1 slots", "node-a", `data-follow="workers"`, "js/list.js?v=")
}

func TestHealth(t *testing.T) {
	t.Parallel()
	w := populated(t)
	w.do(call{method: "GET", path: "/healthz"}).want(t, 200, `"version":"test"`)
	w.do(call{method: "GET", path: "/readyz"}).want(t, 200, "ready")
	w.do(call{method: "GET", path: "/metrics"}).want(t, 200, `agentrl_http_requests_total{class="2xx",method="GET",route="/healthz"} 1`, "agentrl_build_info")
	check(t, w.store.Close())
	w.do(call{method: "GET", path: "/healthz"}).want(t, 200)
	w.do(call{method: "GET", path: "/readyz"}).want(t, 503, `"code":"unavailable"`)
	w.do(call{method: "GET", path: "/api/v1/runs", role: auth.Viewer}).want(t, 500, "something went wrong on our side", "!sql")
}
