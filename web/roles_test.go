package web

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"agentrl/internal/auth"
)

// fill puts values into a route's parameters that name nothing.
func fill(path string) string {
	return strings.NewReplacer(":id", "999999", ":name", "none", ":token", "wrong", ":hash", strings.Repeat("0", 64), "*", "none.js").Replace(path)
}

// TestRoles walks the whole route table with every role: what is below the lowest role is refused, what is at or above
// it is not, and strangers are sent to the sign-in page or told to sign in.
func TestRoles(t *testing.T) {
	t.Parallel()
	w := populated(t)
	if len(w.srv.table) < 70 {
		t.Fatalf("only %d routes", len(w.srv.table))
	}
	for _, rt := range w.srv.table {
		if rt.Min != anyone && rt.Min.Rank() == 0 {
			t.Errorf("%s %s: unknown role %q", rt.Method, rt.Path, rt.Min)
		}
		for _, role := range append([]auth.Role{anyone}, allRoles()...) {
			c := call{method: rt.Method, path: fill(rt.Path)}
			if role != anyone {
				if rt.Kind == api && strings.HasPrefix(rt.Path, "/api/") {
					c.role = role
				} else {
					c.cookie = w.session(role)
				}
			}
			a := w.do(c)
			loc := a.Header.Get("Location")
			name := rt.Method + " " + rt.Path + " as " + string(role)
			switch {
			case rt.Min == anyone:
				if a.StatusCode == http.StatusForbidden {
					t.Errorf("%s: %d", name, a.StatusCode)
				}
			case role == anyone && rt.Kind == page:
				if a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(loc, "/login") {
					t.Errorf("%s: %d to %q, want 303 to /login", name, a.StatusCode, loc)
				}
			case role == anyone:
				if a.StatusCode != http.StatusUnauthorized {
					t.Errorf("%s: %d, want 401", name, a.StatusCode)
				}
			case !role.Allows(rt.Min):
				if a.StatusCode != http.StatusForbidden {
					t.Errorf("%s: %d, want 403", name, a.StatusCode)
				}
			default:
				if a.StatusCode == http.StatusForbidden || a.StatusCode == http.StatusUnauthorized || strings.HasPrefix(loc, "/login") || a.StatusCode >= 500 {
					t.Errorf("%s: %d to %q: %.300s", name, a.StatusCode, loc, a.text)
				}
			}
		}
	}
}

// TestChangesNeedMoreThanViewing holds that no route that changes shared things is open to viewers.
func TestChangesNeedMoreThanViewing(t *testing.T) {
	t.Parallel()
	own := []string{"/settings/", "/api/v1/tokens", "/login", "/logout", "/setup/", "/saved/mix/try", "/saved/pool/try", "/api/v1/dry-run", "/api/v1/runs/validate"}
	w := newWorld(t, "")
	for _, rt := range w.srv.table {
		if rt.Method == http.MethodGet || rt.Min.Allows(auth.Researcher) {
			continue
		}
		if !slices.ContainsFunc(own, func(p string) bool { return strings.HasPrefix(rt.Path, p) }) {
			t.Errorf("%s %s needs only %q", rt.Method, rt.Path, rt.Min)
		}
	}
}

func TestUnknownAddresses(t *testing.T) {
	t.Parallel()
	w := populated(t)
	w.do(call{method: "GET", path: "/nothing"}).want(t, 404, "Not found", "nothing at this address", "!Settings")
	w.do(call{method: "GET", path: "/nothing", cookie: w.session(auth.Viewer)}).want(t, 404, "Not found", "Settings")
	w.do(call{method: "GET", path: "/api/v1/nothing", role: auth.Viewer}).want(t, 404, `"code":"not_found"`)
	w.do(call{method: "PUT", path: "/api/v1/runs", role: auth.Viewer}).want(t, 405, `"code":"invalid"`)
	w.do(call{method: "GET", path: "/api/v1/runs/0", role: auth.Viewer}).want(t, 404, `"code":"not_found"`)
	w.do(call{method: "GET", path: "/api/v1/runs/abc%2fstop", role: auth.Viewer}).want(t, 404)
}
