package web

import (
	"net/http"
	"net/url"

	"agentrl/internal/auth"
	"agentrl/internal/errs"
	"agentrl/templates"
)

func (s *Server) usersRoutes() []route {
	const one = "/settings/users/:id"
	return []route{
		{Method: "GET", Path: "/settings/users", Min: admin, Handler: s.usersPage},
		{Method: "POST", Path: "/settings/users", Min: admin, Handler: s.newUser, BodyLimit: signBody},
		{Method: "POST", Path: one + "/role", Min: admin, Handler: s.setRole, BodyLimit: signBody},
		{Method: "POST", Path: one + "/password", Min: admin, Handler: s.resetPassword, BodyLimit: signBody},
		{Method: "POST", Path: one + "/disable", Min: admin, Handler: s.setDisabled(true), BodyLimit: signBody},
		{Method: "POST", Path: one + "/enable", Min: admin, Handler: s.setDisabled(false), BodyLimit: signBody},
		{Method: "GET", Path: "/settings/audit", Min: admin, Handler: s.auditView},
	}
}

func (s *Server) usersPage(r *request) error {
	return s.showUsers(r, http.StatusOK, templates.UsersView{})
}

func (s *Server) showUsers(r *request, status int, v templates.UsersView) error {
	var err error
	if v.Users, err = s.store.ListUsers(r.Context()); err != nil {
		return err
	}
	v.Now, v.Own = s.clock(), r.user.ID
	if v.New.Role == "" {
		v.New.Role = string(auth.Researcher)
	}
	p := r.Page("Users", "settings", templates.Crumb{Text: "Settings", Href: "/settings"}, templates.Crumb{Text: "Users"})
	return r.Render(status, templates.UsersPage(p, v))
}

func (s *Server) newUser(r *request) error {
	f, err := r.Form()
	if err != nil {
		return err
	}
	n := auth.NewUser{Email: f.Text("email"), Name: f.Text("name"), Password: f.Raw("password"), Role: auth.Role(f.Text("role"))}
	u, err := s.createUser(r, n)
	if err == nil {
		return r.RedirectWith("/settings/users", "good", u.Email+" can sign in now.")
	}
	if e, ok := safe(err); ok && e.Code == errs.Conflict && e.Field == "" {
		f.Fail("email", e.Message)
	} else if !f.FailErr(err) {
		return err
	}
	v := templates.UsersView{Errors: f.Errors}
	v.New.Email, v.New.Name, v.New.Role = n.Email, n.Name, string(n.Role)
	return s.showUsers(r, http.StatusBadRequest, v)
}

// change applies one change to the path's user and goes back to the list with what came of it.
func (s *Server) change(r *request, done string, role *auth.Role, disabled *bool, password *string) error {
	id, err := r.ID("id")
	if err != nil {
		return err
	}
	if err := s.changeUser(r, id, role, disabled, password); err != nil {
		if e, ok := safe(err); ok && (e.Code == errs.Invalid || e.Code == errs.Conflict) {
			return r.RedirectWith("/settings/users", "bad", e.Message)
		}
		return err
	}
	return r.RedirectWith("/settings/users", "good", done)
}

func (s *Server) setRole(r *request) error {
	f, err := r.Form()
	if err != nil {
		return err
	}
	role := auth.Role(f.Text("role"))
	return s.change(r, "The role is changed to "+string(role)+".", &role, nil, nil)
}

func (s *Server) resetPassword(r *request) error {
	f, err := r.Form()
	if err != nil {
		return err
	}
	pw := f.Raw("password")
	return s.change(r, "The new password is set.", nil, nil, &pw)
}

func (s *Server) setDisabled(disabled bool) handler {
	done := "The account may sign in again."
	if disabled {
		done = "The account is locked out."
	}
	return func(r *request) error { return s.change(r, done, nil, &disabled, nil) }
}

func (s *Server) auditView(r *request) error {
	list, next, err := s.auditPage(r)
	if err != nil {
		return err
	}
	v := templates.AuditView{Now: s.clock(), Entries: list, Later: r.Query("cursor") != ""}
	if next != "" {
		v.Next = "/settings/audit?cursor=" + url.QueryEscape(next)
	}
	p := r.Page("Audit record", "settings", templates.Crumb{Text: "Settings", Href: "/settings"}, templates.Crumb{Text: "Audit record"})
	return r.Render(http.StatusOK, templates.AuditPage(p, v))
}
