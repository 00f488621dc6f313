package web

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"agentrl/internal/auth"
	"agentrl/internal/errs"
)

func (s *Server) identifyToken(r *request, plain string) error {
	_, u, err := s.o.Auth.AuthenticateToken(r.Context(), plain)
	if err != nil {
		return err
	}
	r.user, r.role, r.token = u, u.Role, true
	return nil
}

func (s *Server) identifySession(r *request, id string) error {
	ses, u, err := s.o.Auth.Authenticate(r.Context(), id)
	if err != nil {
		if errs.CodeOf(err) == errs.Unauthorized {
			r.c.SetCookie(s.cookie(s.sessionCookie(), "", -1)) // the browser need not send it again
		}
		return err
	}
	r.user, r.role, r.sessionHash = u, u.Role, ses.Hash
	return nil
}

// sessionAge is how long a browser keeps the cookie; the service's own limits end a session earlier.
const sessionAge = 30 * 24 * time.Hour

// signIn sets the session cookie.
func (r *request) signIn(id string) {
	r.c.SetCookie(r.s.cookie(r.s.sessionCookie(), id, int(sessionAge/time.Second)))
}

// origin says where the request comes from, for sessions, limits and the audit record.
func (r *request) origin() auth.Origin {
	return auth.Origin{Addr: addrOf(r.c.Request()), UserAgent: clip(r.c.Request().UserAgent(), 300)}
}

// sessionID is the cookie's value, or empty.
func (r *request) sessionID() string {
	ck, err := r.c.Cookie(r.s.sessionCookie())
	if err != nil {
		return ""
	}
	return ck.Value
}

// setRetryAfter tells a limited client when to come again, in whole seconds.
func setRetryAfter(h http.Header, err error) {
	var re *auth.RetryError
	if errors.As(err, &re) {
		h.Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(re.After.Seconds())))))
	}
}
