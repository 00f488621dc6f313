package web

import (
	"encoding/hex"
	"net/http"
	"slices"

	"agentrl/internal/auth"
	"agentrl/internal/errs"
	"agentrl/templates"
)

func (s *Server) settingsRoutes() []route {
	return []route{
		{Method: "GET", Path: "/settings", Min: viewer, Handler: s.settingsPage},
		{Method: "POST", Path: "/settings/password", Min: viewer, Handler: s.changePassword, BodyLimit: signBody},
		{Method: "POST", Path: "/settings/sessions/:hash/revoke", Min: viewer, Handler: s.revokeSession, BodyLimit: signBody},
		{Method: "POST", Path: "/settings/tokens", Min: viewer, Handler: s.newToken, BodyLimit: signBody},
		{Method: "POST", Path: "/settings/tokens/:id/revoke", Min: viewer, Handler: s.revokeToken, BodyLimit: signBody},
	}
}

func (s *Server) settingsPage(r *request) error {
	return s.showSettings(r, http.StatusOK, templates.SettingsView{})
}

// showSettings fills in what the page always shows.
func (s *Server) showSettings(r *request, status int, v templates.SettingsView) error {
	var err error
	v.Now, v.Account, v.Current = s.clock(), r.user, r.sessionHash
	if v.Sessions, err = s.o.Auth.Sessions(r.Context(), r.user.ID); err != nil {
		return err
	}
	if v.Tokens, err = s.o.Auth.Tokens(r.Context(), r.user.ID); err != nil {
		return err
	}
	if v.Token.Role == "" {
		v.Token.Role = string(r.role)
	}
	if v.Token.Days == "" {
		v.Token.Days = "90"
	}
	return r.Render(status, templates.SettingsPage(r.Page("Settings", "settings", templates.Crumb{Text: "Settings"}), v))
}

func (s *Server) changePassword(r *request) error {
	f, err := r.Form()
	if err != nil {
		return err
	}
	err = s.o.Auth.ChangePassword(r.Context(), r.user, f.Raw("old"), f.Raw("password"), r.sessionHash, r.origin())
	switch {
	case err == nil:
		s.sockets.recheck()
		return r.RedirectWith("/settings", "good", "The password is changed; your other sessions are signed out.")
	case errs.CodeOf(err) == errs.Unauthorized:
		f.Fail("old", "this is not your password now")
	case errs.CodeOf(err) == errs.Invalid:
		e, _ := safe(err)
		field := e.Field
		switch {
		case slices.Contains([]string{"old", "old_password"}, field):
			field = "old"
		default:
			field = "password"
		}
		f.Fail(field, e.Message)
	default:
		return err
	}
	return s.showSettings(r, http.StatusBadRequest, templates.SettingsView{Errors: f.Errors})
}

func (s *Server) revokeSession(r *request) error {
	hash, err := hex.DecodeString(r.Param("hash"))
	if err != nil || len(hash) != 32 {
		return errs.New(errs.NotFound, "there is no such session")
	}
	if err := s.o.Auth.RevokeSession(r.Context(), r.user, r.user.ID, hash, r.origin()); err != nil {
		return err
	}
	s.sockets.recheck()
	return r.RedirectWith("/settings", "good", "That session is signed out.")
}

func (s *Server) newToken(r *request) error {
	f, err := r.Form()
	if err != nil {
		return err
	}
	var v templates.SettingsView
	v.Token.Name, v.Token.Role, v.Token.Days = f.Text("name"), f.Text("role"), f.Text("days")
	days := f.Int("days", 90, 0, maxTokenDays)
	if f.OK() {
		plain, _, err := s.createToken(r, v.Token.Name, auth.Role(v.Token.Role), days)
		switch {
		case err == nil:
			v = templates.SettingsView{NewToken: plain}
			return s.showSettings(r, http.StatusOK, v)
		case errs.CodeOf(err) == errs.Forbidden:
			e, _ := safe(err)
			f.Fail("role", e.Message)
		case !f.FailErr(err):
			return err
		}
	}
	v.Errors = f.Errors
	return s.showSettings(r, http.StatusBadRequest, v)
}

func (s *Server) revokeToken(r *request) error {
	id, err := r.ID("id")
	if err != nil {
		return err
	}
	if err := s.o.Auth.RevokeToken(r.Context(), r.user, r.user.ID, id, r.origin()); err != nil {
		return err
	}
	s.sockets.recheck()
	return r.RedirectWith("/settings", "good", "The token is revoked.")
}
