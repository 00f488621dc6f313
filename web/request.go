package web

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"agentrl/internal/auth"
	"agentrl/internal/errs"
	"agentrl/templates"
)

// request is one HTTP request as handlers see it; the framework stays behind it.
type request struct {
	s    *Server
	c    echo.Context
	id   string // request id, quoted in errors
	user auth.User
	role auth.Role // of the session or token; empty: anonymous
	// token is set when the request was authenticated by a bearer token.
	token       bool
	nonce       string
	form        *formData
	sessionHash []byte
	identified  bool
}

func (r *request) Context() context.Context { return r.c.Request().Context() }
func (r *request) Request() *http.Request   { return r.c.Request() }

// User is who asks; the zero User when nobody is signed in.
func (r *request) User() auth.User { return r.user }

// Can reports whether the request's role allows what needs min.
func (r *request) Can(min auth.Role) bool { return r.role.Allows(min) }

// Param is a path parameter.
func (r *request) Param(name string) string { return r.c.Param(name) }

// PathText is a path parameter with its percent escapes undone; broken ones stay as they are.
func (r *request) PathText(name string) string {
	if v, err := url.PathUnescape(r.c.Param(name)); err == nil {
		return v
	}
	return r.c.Param(name)
}

// ID is a path parameter that must be a positive number; anything else does not exist.
func (r *request) ID(name string) (int64, error) {
	n, err := parseID(r.c.Param(name))
	if err != nil {
		return 0, errs.New(errs.NotFound, "there is nothing at this address: %q is not a number", clip(r.c.Param(name), 40))
	}
	return n, nil
}

// parseID reads a positive number.
func parseID(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err == nil && n <= 0 {
		err = strconv.ErrRange
	}
	return n, err
}

// Query is a query parameter, trimmed.
func (r *request) Query(name string) string { return strings.TrimSpace(r.c.QueryParam(name)) }

// QueryInt is a whole number in [lo, hi] from the query; def when it is absent.
func (r *request) QueryInt(name string, def, lo, hi int64) (int64, error) {
	v := r.Query(name)
	if v == "" {
		return def, nil
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < lo || n > hi {
		return 0, errs.Field(name, "must be a whole number from %d to %d, not %q", lo, hi, clip(v, 40))
	}
	return n, nil
}

// HTMX reports whether htmx asks for a fragment rather than a whole page.
func (r *request) HTMX() bool { return r.c.Request().Header.Get("HX-Request") == "true" }

// Page is the frame's data for this request: user, role, nonce, assets and the pending flash message. The last crumb
// is the page itself.
func (r *request) Page(title, nav string, crumbs ...templates.Crumb) templates.Page {
	return templates.Page{
		Title: title, Nav: nav, User: displayName(r.user), Role: r.role, Nonce: r.nonce,
		Assets: r.s.assets.URL, Crumbs: crumbs, Flash: r.takeFlash(),
	}
}

// Render writes a component with the request's nonce in its context.
func (r *request) Render(status int, c templ.Component) error {
	return r.s.render(r, status, c)
}

// Redirect answers 303, or tells htmx to go there.
func (r *request) Redirect(to string) error {
	if r.HTMX() {
		r.c.Response().Header().Set("HX-Redirect", to)
		return r.c.NoContent(http.StatusNoContent)
	}
	return r.c.Redirect(http.StatusSeeOther, to)
}

// RedirectWith sets a flash message ("good", "bad" or "information") and redirects.
func (r *request) RedirectWith(to, kind, text string) error {
	r.SetFlash(kind, text)
	return r.Redirect(to)
}

// JSON writes v with the status.
func (r *request) JSON(status int, v any) error { return r.c.JSON(status, v) }

func displayName(u auth.User) string {
	if u.Name != "" {
		return u.Name
	}
	return u.Email
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
