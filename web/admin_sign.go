package web

import (
	"errors"
	"net/http"
	"strconv"

	"agentrl/internal/auth"
	"agentrl/internal/errs"
	"agentrl/templates"
)

const signBody = 16 << 10

func (s *Server) signRoutes() []route {
	return []route{
		{Method: "GET", Path: setupPrefix + ":token", Min: anyone, Handler: s.setupPage, BodyLimit: signBody},
		{Method: "POST", Path: setupPrefix + ":token", Min: anyone, Handler: s.setup, BodyLimit: signBody},
		{Method: "GET", Path: "/login", Min: anyone, Handler: s.loginPage, BodyLimit: signBody},
		{Method: "POST", Path: "/login", Min: anyone, Handler: s.login, BodyLimit: signBody},
		{Method: "POST", Path: "/logout", Min: anyone, Handler: s.logout, BodyLimit: signBody},
	}
}

func (s *Server) setupPage(r *request) error {
	if err := s.o.Auth.CheckSetup(r.Context(), r.Param("token")); err != nil {
		return setupGone(err)
	}
	return r.Render(http.StatusOK, templates.SetupPage(r.Page("First start", ""), r.c.Request().URL.Path, templates.SetupView{}))
}

// setupGone explains a link that no longer works.
func setupGone(err error) error {
	switch errs.CodeOf(err) {
	case errs.Conflict:
		return errs.Wrap(errs.NotFound, err, "the first account exists already, so this link no longer works; sign in instead")
	case errs.Unauthorized:
		return errs.Wrap(errs.NotFound, err, "this setup link is not valid; use the newest one that the server printed when it started")
	}
	return err
}

func (s *Server) setup(r *request) error {
	f, err := r.Form()
	if err != nil {
		return err
	}
	n := auth.NewUser{Email: f.Required("email", "the email address"), Name: f.Text("name"), Password: f.Raw("password"), Role: auth.Admin}
	token := r.Param("token")
	if f.OK() {
		id, u, err := s.o.Auth.CompleteSetup(r.Context(), token, n, r.origin())
		switch {
		case err == nil:
			r.signIn(id)
			r.user, r.role = u, u.Role
			return r.RedirectWith("/runs", "good", "The admin account is ready. Start a run, or make accounts for others under Settings.")
		case errs.CodeOf(err) != errs.Invalid:
			return setupGone(err)
		case !f.FailErr(err):
			return err
		}
	}
	return r.Render(http.StatusBadRequest, templates.SetupPage(r.Page("First start", ""), r.c.Request().URL.Path,
		templates.SetupView{Email: n.Email, Name: n.Name, Errors: f.Errors}))
}

func (s *Server) loginPage(r *request) error {
	if r.role != "" {
		return r.Redirect(localPath(r.Query("next")))
	}
	return s.showLogin(r, http.StatusOK, templates.LoginView{Next: r.Query("next")})
}

func (s *Server) showLogin(r *request, status int, v templates.LoginView) error {
	var err error
	if v.NeedsSetup, err = s.o.Auth.NeedsSetup(r.Context()); err != nil {
		return err
	}
	p := r.Page("Sign in", "")
	p.User = "" // the form belongs to nobody
	return r.Render(status, templates.LoginPage(p, v))
}

func (s *Server) login(r *request) error {
	f, err := r.Form()
	if err != nil {
		return err
	}
	email, next := f.Text("email"), f.Text("next")
	id, u, err := s.o.Auth.Login(r.Context(), email, f.Raw("password"), r.origin())
	if err == nil {
		if old := r.sessionID(); old != "" {
			_ = s.o.Auth.Logout(r.Context(), old, r.origin()) // the browser forgets it now; it ends by its limits otherwise
			s.sockets.recheck()
		}
		s.metrics.logins.WithLabelValues("ok").Inc()
		r.signIn(id)
		r.user, r.role = u, u.Role
		return r.Redirect(localPath(next))
	}
	v := templates.LoginView{Email: clip(email, 200), Next: next}
	switch errs.CodeOf(err) {
	case errs.RateLimited:
		s.metrics.logins.WithLabelValues("limited").Inc()
		setRetryAfter(r.c.Response().Header(), err)
		v.Error = "Too many tries. Wait " + waitText(err) + " and try again."
		return s.showLogin(r, http.StatusTooManyRequests, v)
	case errs.Unauthorized, errs.Invalid:
		s.metrics.logins.WithLabelValues("refused").Inc()
		v.Error = "This email address and password do not belong together."
		return s.showLogin(r, http.StatusUnauthorized, v)
	}
	return err
}

func waitText(err error) string {
	var re *auth.RetryError
	if !errors.As(err, &re) {
		return "a moment"
	}
	if n := int(re.After.Seconds() + 0.999); n < 120 {
		return strconv.Itoa(max(n, 1)) + " seconds"
	}
	return strconv.Itoa(int(re.After.Minutes()+0.999)) + " minutes"
}

func (s *Server) logout(r *request) error {
	if id := r.sessionID(); id != "" {
		if err := s.o.Auth.Logout(r.Context(), id, r.origin()); err != nil {
			return err
		}
		s.sockets.recheck()
	}
	r.c.SetCookie(s.cookie(s.sessionCookie(), "", -1))
	r.c.Response().Header().Set("Clear-Site-Data", `"cache"`)
	return r.RedirectWith("/login", "information", "You are signed out.")
}
