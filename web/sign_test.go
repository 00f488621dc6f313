package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentrl/internal/auth"
)

func form(kv ...string) string {
	v := url.Values{}
	for i := 0; i+1 < len(kv); i += 2 {
		v.Set(kv[i], kv[i+1])
	}
	return v.Encode()
}

// sessionOf finds the session cookie of an answer; nil when it sets none.
func (w *world) sessionOf(a answer) *http.Cookie {
	for _, c := range a.Cookies() {
		if c.Name == w.srv.sessionCookie() && c.MaxAge >= 0 {
			return c
		}
	}
	return nil
}

// TestFirstRun opens the one-time link, makes the admin, and finds the link gone.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "")
	w.do(call{method: "GET", path: "/"}).want(t, 303)
	w.do(call{method: "GET", path: "/login"}).want(t, 200, "There is no account yet", "!<form")
	token, err := w.auth.SetupToken(t.Context())
	check(t, err)
	link := "/setup/" + token
	w.do(call{method: "GET", path: "/setup/wrong"}).want(t, 404, "not valid")
	w.do(call{method: "GET", path: link}).want(t, 200, "Create the admin account", `name="password"`)
	w.do(call{method: "POST", path: link, body: form("email", `x"><script>`, "password", "short")}).want(t, 400, "!<script>alert", `x&#34;&gt;&lt;script&gt;`)
	a := w.do(call{method: "POST", path: link, body: form("email", "root@example.org", "password", "short")})
	a.want(t, 400, "at least 12", "root@example.org", "!short\"")
	a = w.do(call{method: "POST", path: link, body: form("email", "root@example.org", "name", "Root", "password", goodPassword)})
	a.want(t, 303)
	ck := w.sessionOf(a)
	if ck == nil || !ck.HttpOnly || ck.SameSite != http.SameSiteLaxMode || ck.Secure || ck.Path != "/" || len(ck.Value) < 43 {
		t.Fatalf("session cookie %+v", ck)
	}
	w.do(call{method: "GET", path: "/settings/users", cookie: ck}).want(t, 200, "root@example.org")
	w.do(call{method: "GET", path: link}).want(t, 404, "no longer works")
	w.do(call{method: "POST", path: link, body: form("email", "two@example.org", "password", goodPassword)}).want(t, 404, "no longer works")
}

// TestSignIn signs in, is sent back where it came from, expires, and signs out.
func TestSignIn(t *testing.T) {
	t.Parallel()
	w := populated(t)
	a := w.do(call{method: "GET", path: "/queue?state=failed"})
	a.want(t, 303)
	if got := a.Header.Get("Location"); got != "/login?next=%2Fqueue%3Fstate%3Dfailed" {
		t.Errorf("sent to %q", got)
	}
	w.do(call{method: "GET", path: "/login?next=%2Fqueue"}).want(t, 200, `value="/queue"`)
	w.do(call{method: "POST", path: "/login", body: form("email", "viewer@example.org", "password", "wrong wrong wrong")}).
		want(t, 401, "do not belong together", "viewer@example.org")
	w.do(call{method: "POST", path: "/login", body: form("email", "nobody@example.org", "password", "wrong wrong wrong")}).want(t, 401, "do not belong together")
	for next, want := range map[string]string{"/queue": "/queue", "//evil.example": "/runs", "https://evil.example/": "/runs", `/\evil.example`: "/runs", "": "/runs", "javascript:x": "/runs"} {
		a = w.do(call{method: "POST", path: "/login", body: form("email", "viewer@example.org", "password", goodPassword, "next", next)})
		a.want(t, 303)
		if got := a.Header.Get("Location"); got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
	ck := w.sessionOf(a)
	w.do(call{method: "GET", path: "/settings", cookie: ck}).want(t, 200, "viewer@example.org", "this one")
	w.clock.add(13 * time.Hour) // idle limit
	a = w.do(call{method: "GET", path: "/settings", cookie: ck})
	a.want(t, 303)
	if !strings.HasPrefix(a.Header.Get("Location"), "/login?next=%2Fsettings") {
		t.Errorf("an expired session leads to %q", a.Header.Get("Location"))
	}
	w.do(call{method: "GET", path: "/api/v1/me", cookie: ck}).want(t, 401, `"code":"unauthorized"`)

	ck = w.session(auth.Viewer)
	w.do(call{method: "POST", path: "/logout", cookie: ck}).want(t, 303)
	w.do(call{method: "GET", path: "/settings", cookie: ck}).want(t, 303)
}

// TestSignInLimit holds that guessing is slowed down with a time to wait.
func TestSignInLimit(t *testing.T) {
	t.Parallel()
	w := populated(t)
	for range 60 {
		a := w.do(call{method: "POST", path: "/login", body: form("email", "admin@example.org", "password", "a guess that is wrong")})
		if a.StatusCode == http.StatusTooManyRequests {
			a.want(t, 429, "Too many tries")
			if a.Header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
			return
		}
		a.want(t, 401)
	}
	t.Error("60 wrong passwords in a row were all looked at")
}

// TestSecureCookie holds the cookie's form behind TLS.
func TestSecureCookie(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "https://rl.example.org")
	token, err := w.auth.SetupToken(t.Context())
	check(t, err)
	a := w.do(call{method: "POST", path: "/setup/" + token, body: form("email", "root@example.org", "password", goodPassword)})
	a.want(t, 303)
	ck := w.sessionOf(a)
	if ck == nil || ck.Name != "__Host-agentrl" || !ck.Secure || ck.Domain != "" || ck.Path != "/" {
		t.Errorf("cookie %+v", ck)
	}
	if got := a.Header.Get("Strict-Transport-Security"); got != "max-age=31536000" {
		t.Errorf("HSTS %q", got)
	}
}

// TestSettings changes the password, makes and revokes a token, and ends another session.
func TestSettings(t *testing.T) {
	t.Parallel()
	w := populated(t)
	ck, other := w.session(auth.Viewer), w.session(auth.Viewer)
	a := w.do(call{method: "POST", path: "/settings/tokens", cookie: ck, body: form("name", "my script", "role", "viewer", "days", "30")})
	a.want(t, 200, "shown only now", `id="new-token"`, "my script")
	_, rest, _ := strings.Cut(a.text, `id="new-token">`)
	plain, _, _ := strings.Cut(rest, "<")
	w.tokens["fresh"] = plain
	w.do(call{method: "GET", path: "/api/v1/me", role: "fresh"}).want(t, 200, "viewer@example.org")
	w.do(call{method: "GET", path: "/settings", cookie: ck}).want(t, 200, "my script", "!"+plain)
	w.do(call{method: "POST", path: "/settings/tokens", cookie: ck, body: form("name", "x", "role", "admin", "days", "30")}).want(t, 400, "at most viewer")
	w.do(call{method: "POST", path: "/settings/tokens", cookie: ck, body: form("name", "", "role", "viewer", "days", "many")}).want(t, 400, "whole number")
	w.do(call{method: "POST", path: "/settings/tokens/5/revoke", cookie: ck}).want(t, 303)
	w.do(call{method: "GET", path: "/api/v1/me", role: "fresh"}).want(t, 401, "not valid")

	w.do(call{method: "POST", path: "/settings/password", cookie: ck, body: form("old", "wrong", "password", "a new long password 7")}).want(t, 400, "not your password")
	w.do(call{method: "POST", path: "/settings/password", cookie: ck, body: form("old", goodPassword, "password", "short")}).want(t, 400, "at least 12")
	w.do(call{method: "POST", path: "/settings/password", cookie: ck, body: form("old", goodPassword, "password", "a new long password 7")}).want(t, 303)
	w.do(call{method: "GET", path: "/settings", cookie: ck}).want(t, 200)
	w.do(call{method: "GET", path: "/settings", cookie: other}).want(t, 303)
}

// TestUsersPage makes a person, locks it out and reads the record.
func TestUsersPage(t *testing.T) {
	t.Parallel()
	w := populated(t)
	ck, victim := w.session(auth.Admin), w.session(auth.Viewer)
	w.do(call{method: "POST", path: "/settings/users", cookie: ck, body: form("email", "new@example.org", "name", `<img src=x onerror=alert(1)>`, "role", "annotator", "password", goodPassword)}).want(t, 303)
	w.do(call{method: "POST", path: "/settings/users", cookie: ck, body: form("email", "new@example.org", "role", "annotator", "password", goodPassword)}).want(t, 400, "class=\"error\"")
	w.do(call{method: "POST", path: "/settings/users", cookie: ck, body: form("email", "n2@example.org", "role", "king", "password", goodPassword)}).want(t, 400, "is not a role")
	w.do(call{method: "GET", path: "/settings/users", cookie: ck}).want(t, 200, "new@example.org", "!<img src=x", "&lt;img src=x")
	id := idOf(w.users[auth.Viewer])
	w.do(call{method: "POST", path: "/settings/users/" + id + "/disable", cookie: ck}).want(t, 303)
	w.do(call{method: "GET", path: "/runs", cookie: victim}).want(t, 303)
	w.do(call{method: "GET", path: "/api/v1/me", role: auth.Viewer}).want(t, 401)
	w.do(call{method: "POST", path: "/settings/users/" + id + "/enable", cookie: ck}).want(t, 303)
	w.do(call{method: "POST", path: "/settings/users/" + id + "/role", cookie: ck, body: form("role", "researcher")}).want(t, 303)
	w.do(call{method: "POST", path: "/settings/users/" + id + "/password", cookie: ck, body: form("password", "short")}).want(t, 303)
	w.do(call{method: "POST", path: "/settings/users/" + id + "/password", cookie: ck, body: form("password", "another long password 9")}).want(t, 303)
	w.do(call{method: "POST", path: "/settings/users/" + idOf(w.users[auth.Admin]) + "/role", cookie: ck, body: form("role", "viewer")}).want(t, 303)
	w.do(call{method: "GET", path: "/settings/users", cookie: ck}).want(t, 200) // the last admin stays one
	w.do(call{method: "GET", path: "/settings/audit?limit=3", cookie: ck}).want(t, 200, "admin@example.org", "Older", "!herons")
}

func idOf(u auth.User) string { return jsonText(u.ID) }
