package web

import (
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"agentrl/internal/errs"
)

// wrap puts in front of a handler what its line of the route table demands: body limit, who asks, where from, and the
// lowest role.
func (s *Server) wrap(rt route) echo.HandlerFunc {
	limit := rt.BodyLimit
	if limit == 0 {
		limit = pageBody
		if rt.Kind == api {
			limit = apiBody
		}
	}
	return func(c echo.Context) error {
		r := requestOf(c)
		if err := s.guard(r, rt, limit); err != nil {
			if rt.Kind == page && r.role == "" && errs.CodeOf(err) == errs.Unauthorized {
				return r.toLogin()
			}
			s.fail(r, rt.Kind, err)
			return nil
		}
		if rt.Kind == api {
			c.Response().Header().Set("Cache-Control", "no-store")
		}
		if err := rt.Handler(r); err != nil {
			s.fail(r, rt.Kind, err)
		}
		return nil
	}
}

// guard decides whether the request may reach its handler.
func (s *Server) guard(r *request, rt route, limit int64) error {
	q := r.c.Request()
	if q.ContentLength > limit {
		return errs.New(errs.TooLarge, "the request has %d bytes; at most %d are accepted here", q.ContentLength, limit)
	}
	q.Body = http.MaxBytesReader(r.c.Response(), q.Body, limit)
	if err := s.identify(r, rt.Kind); err != nil {
		if rt.Min != anyone || errs.CodeOf(err) != errs.Unauthorized {
			return err
		}
	}
	if !r.token {
		if err := s.cross.Check(q); err != nil {
			return errs.Wrap(errs.Forbidden, err, "this request came from another site and was refused; open the page at %s and try again", s.origin)
		}
	}
	if rt.Min == anyone {
		return nil
	}
	if r.role == "" {
		return errs.New(errs.Unauthorized, "sign in or send an API token as \"Authorization: Bearer …\"")
	}
	if !r.role.Allows(rt.Min) {
		return errs.New(errs.Forbidden, "this needs the role %s; yours is %s", rt.Min, r.role)
	}
	return nil
}

// identify finds who asks: a bearer token on the API, else the session cookie. No credentials are no error.
func (s *Server) identify(r *request, k kind) error {
	if r.identified {
		return nil
	}
	r.identified = true
	q := r.c.Request()
	if h := q.Header.Get("Authorization"); h != "" && k == api {
		scheme, value, _ := strings.Cut(h, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return errs.New(errs.Unauthorized, "the authorization scheme %q is not known; use Bearer", clip(scheme, 20))
		}
		return s.identifyToken(r, strings.TrimSpace(value))
	}
	ck, err := r.c.Cookie(s.sessionCookie())
	if err != nil || ck.Value == "" {
		return nil
	}
	return s.identifySession(r, ck.Value)
}

// sessionCookie is the cookie's name. Browsers accept the __Host- prefix only over https.
func (s *Server) sessionCookie() string {
	if s.secure {
		return "__Host-agentrl"
	}
	return "agentrl"
}

// toLogin sends a browser to the sign-in page and back afterwards.
func (r *request) toLogin() error {
	to := "/login"
	q := r.c.Request()
	if q.Method == http.MethodGet && q.URL.Path != "/" && !r.HTMX() {
		to += "?next=" + url.QueryEscape(q.URL.RequestURI())
	}
	return r.Redirect(to)
}

// localPath accepts only addresses on this site, for redirects after sign-in.
func localPath(p string) string {
	u, err := url.Parse(p)
	if err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(p, "/") || strings.HasPrefix(p, "//") ||
		strings.ContainsAny(p, "\\\r\n\t") {
		return "/runs"
	}
	return p
}

// addrOf is the peer's address without its port. Forwarded headers are not believed.
func addrOf(q *http.Request) string {
	host, _, err := net.SplitHostPort(q.RemoteAddr)
	if err != nil {
		return q.RemoteAddr
	}
	return host
}
