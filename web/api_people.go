package web

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"agentrl/internal/auth"
	"agentrl/internal/errs"
)

func (s *Server) apiPeopleRoutes() []route {
	return []route{
		{Method: "GET", Path: "/api/v1/me", Min: viewer, Handler: s.apiMe},
		{Method: "GET", Path: "/api/v1/tokens", Min: viewer, Handler: s.apiTokens},
		{Method: "POST", Path: "/api/v1/tokens", Min: viewer, Handler: s.apiCreateToken},
		{Method: "DELETE", Path: "/api/v1/tokens/:id", Min: viewer, Handler: s.apiRevokeToken},
		{Method: "GET", Path: "/api/v1/users", Min: admin, Handler: s.apiUsers},
		{Method: "POST", Path: "/api/v1/users", Min: admin, Handler: s.apiCreateUser},
		{Method: "PATCH", Path: "/api/v1/users/:id", Min: admin, Handler: s.apiChangeUser},
		{Method: "GET", Path: "/api/v1/audit", Min: admin, Handler: s.apiAudit},
	}
}

// userJSON is a user without what is secret.
type userJSON struct {
	ID         int64      `json:"id"`
	Email      string     `json:"email"`
	Name       string     `json:"name"`
	Role       auth.Role  `json:"role"`
	Disabled   bool       `json:"disabled"`
	CreatedAt  time.Time  `json:"created_at"`
	LastSeenAt *time.Time `json:"last_seen_at"`
}

func userOf(u auth.User) userJSON {
	return userJSON{u.ID, u.Email, u.Name, u.Role, u.Disabled, u.CreatedAt, timeOrNull(u.LastSeenAt)}
}

// tokenJSON is a token without its secret.
type tokenJSON struct {
	ID         int64      `json:"id"`
	Name       string     `json:"name"`
	Prefix     string     `json:"prefix"`
	Role       auth.Role  `json:"role"`
	CreatedAt  time.Time  `json:"created_at"`
	ExpiresAt  *time.Time `json:"expires_at"`
	LastUsedAt *time.Time `json:"last_used_at"`
	RevokedAt  *time.Time `json:"revoked_at"`
	Token      string     `json:"token,omitempty"` // only in the answer that creates it
}

func tokenOf(t auth.Token) tokenJSON {
	return tokenJSON{ID: t.ID, Name: t.Name, Prefix: t.Prefix, Role: t.Role, CreatedAt: t.CreatedAt,
		ExpiresAt: timeOrNull(t.ExpiresAt), LastUsedAt: timeOrNull(t.LastUsedAt), RevokedAt: timeOrNull(t.RevokedAt)}
}

func timeOrNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (s *Server) apiMe(r *request) error {
	u := userOf(r.user)
	u.Role = r.role // of a token: the token's
	return r.JSON(http.StatusOK, u)
}

func (s *Server) apiTokens(r *request) error {
	all, err := s.o.Auth.Tokens(r.Context(), r.user.ID)
	if err != nil {
		return err
	}
	out := make([]tokenJSON, 0, len(all))
	for _, t := range all {
		out = append(out, tokenOf(t))
	}
	items, next, total, err := window(r, out)
	if err != nil {
		return err
	}
	return answerList(r, items, next, total)
}

const maxTokenDays = 3650

func (s *Server) apiCreateToken(r *request) error {
	var in struct {
		Name string    `json:"name"`
		Role auth.Role `json:"role"`
		Days int64     `json:"days"` // 0: never expires
	}
	if err := r.Decode(&in); err != nil {
		return err
	}
	plain, t, err := s.createToken(r, in.Name, in.Role, in.Days)
	if err != nil {
		return err
	}
	j := tokenOf(t)
	j.Token = plain
	return r.JSON(http.StatusCreated, j)
}

// createToken makes a token of the caller, at most of the role the request has; an empty role is that one.
func (s *Server) createToken(r *request, name string, role auth.Role, days int64) (string, auth.Token, error) {
	if err := checkName("name", name, 80); err != nil {
		return "", auth.Token{}, err
	}
	if role == "" {
		role = r.role
	}
	if err := checkRole("role", role); err != nil {
		return "", auth.Token{}, err
	}
	if !r.role.Allows(role) {
		return "", auth.Token{}, &errs.Error{Code: errs.Forbidden, Field: "role", Message: "a token cannot do more than you: at most " + string(r.role)}
	}
	if days < 0 || days > maxTokenDays {
		return "", auth.Token{}, errs.Field("days", "must be from 1 to %d, or 0 for a token that does not expire", maxTokenDays)
	}
	return s.o.Auth.CreateToken(r.Context(), r.user, name, role, time.Duration(days)*24*time.Hour, r.origin())
}

func (s *Server) apiRevokeToken(r *request) error {
	id, err := r.ID("id")
	if err != nil {
		return err
	}
	if err := s.o.Auth.RevokeToken(r.Context(), r.user, r.user.ID, id, r.origin()); err != nil {
		return err
	}
	s.sockets.recheck()
	return r.c.NoContent(http.StatusNoContent)
}

func (s *Server) apiUsers(r *request) error {
	all, err := s.store.ListUsers(r.Context())
	if err != nil {
		return err
	}
	out := make([]userJSON, 0, len(all))
	for _, u := range all {
		out = append(out, userOf(u))
	}
	items, next, total, err := window(r, out)
	if err != nil {
		return err
	}
	return answerList(r, items, next, total)
}

func (s *Server) apiCreateUser(r *request) error {
	var in struct {
		Email    string    `json:"email"`
		Name     string    `json:"name"`
		Password string    `json:"password"`
		Role     auth.Role `json:"role"`
	}
	if err := r.Decode(&in); err != nil {
		return err
	}
	u, err := s.createUser(r, auth.NewUser{Email: in.Email, Name: in.Name, Password: in.Password, Role: in.Role})
	if err != nil {
		return err
	}
	return r.JSON(http.StatusCreated, userOf(u))
}

func (s *Server) createUser(r *request, n auth.NewUser) (auth.User, error) {
	if err := checkRole("role", n.Role); err != nil {
		return auth.User{}, err
	}
	if n.Name != "" {
		if err := checkName("name", n.Name, 120); err != nil {
			return auth.User{}, err
		}
	}
	return s.o.Auth.CreateUser(r.Context(), r.user, n, r.origin())
}

func (s *Server) apiChangeUser(r *request) error {
	id, err := r.ID("id")
	if err != nil {
		return err
	}
	var in struct {
		Role     *auth.Role `json:"role"`
		Disabled *bool      `json:"disabled"`
		Password *string    `json:"password"`
	}
	if err := r.Decode(&in); err != nil {
		return err
	}
	if in.Role == nil && in.Disabled == nil && in.Password == nil {
		return errs.New(errs.Invalid, "nothing to change: give role, disabled or password")
	}
	if err := s.changeUser(r, id, in.Role, in.Disabled, in.Password); err != nil {
		return err
	}
	u, err := s.store.UserByID(r.Context(), id)
	if err != nil {
		return err
	}
	return r.JSON(http.StatusOK, userOf(u))
}

// changeUser applies what is not nil, and closes the live connections that end with it.
func (s *Server) changeUser(r *request, id int64, role *auth.Role, disabled *bool, password *string) error {
	ctx, o := r.Context(), r.origin()
	defer s.sockets.recheck()
	if role != nil {
		if err := checkRole("role", *role); err != nil {
			return err
		}
		if err := s.o.Auth.SetRole(ctx, r.user, id, *role, o); err != nil {
			return err
		}
	}
	if password != nil {
		if err := s.o.Auth.ResetPassword(ctx, r.user, id, *password, o); err != nil {
			return err
		}
	}
	if disabled != nil {
		return s.o.Auth.SetDisabled(ctx, r.user, id, *disabled, o)
	}
	return nil
}

// allRoles lists the roles, lowest first.
func allRoles() []auth.Role {
	return []auth.Role{auth.Viewer, auth.Annotator, auth.Researcher, auth.Admin}
}

func checkRole(field string, v auth.Role) error {
	if v.Rank() == 0 {
		return errs.Field(field, "%q is not a role; allowed are viewer, annotator, researcher and admin", clip(string(v), 40))
	}
	return nil
}

type auditJSON struct {
	ID     int64     `json:"id"`
	At     time.Time `json:"at"`
	UserID int64     `json:"user_id"`
	Email  string    `json:"email"`
	Addr   string    `json:"addr"`
	Action string    `json:"action"`
	Object string    `json:"object"`
	Before string    `json:"before"`
	After  string    `json:"after"`
}

func (s *Server) apiAudit(r *request) error {
	list, next, err := s.auditPage(r)
	if err != nil {
		return err
	}
	out := make([]auditJSON, 0, len(list))
	for _, e := range list {
		out = append(out, auditJSON{e.ID, e.At, e.UserID, e.Email, e.Addr, e.Action, e.Object, e.Before, e.After})
	}
	return answerList(r, out, next, nil)
}

// auditPage is one page of the record, newest first; the cursor is the last id seen.
func (s *Server) auditPage(r *request) ([]auth.AuditEntry, string, error) {
	limit, err := r.Limit()
	if err != nil {
		return nil, "", err
	}
	before, err := r.QueryInt("cursor", math.MaxInt64, 1, math.MaxInt64)
	if err != nil {
		return nil, "", err
	}
	all, err := s.store.AuditLog(r.Context(), before, limit)
	if err != nil {
		return nil, "", err
	}
	next := ""
	if len(all) == limit {
		next = strconv.FormatInt(all[len(all)-1].ID, 10)
	}
	return all, next, nil
}
