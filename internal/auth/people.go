package auth

import (
	"context"

	"agentrl/internal/errs"
)

// build checks n and returns the user to create, with its password hashed.
func (s *Service) build(ctx context.Context, n NewUser) (User, error) {
	email, err := cleanEmail(n.Email)
	if err != nil {
		return User{}, err
	}
	name, err := cleanName(n.Name)
	if err != nil {
		return User{}, err
	}
	if err := checkRole(n.Role); err != nil {
		return User{}, err
	}
	if err := checkPassword(n.Password, email, s.common); err != nil {
		return User{}, err
	}
	hash, err := s.hasher.hash(ctx, n.Password)
	if err != nil {
		return User{}, err
	}
	return User{Email: email, Name: name, Role: n.Role, PasswordHash: hash, CreatedAt: s.now()}, nil
}

// CreateUser needs an admin as actor, or the zero User from the command line. Forbidden, Invalid, Conflict: the address
// is taken.
func (s *Service) CreateUser(ctx context.Context, actor User, n NewUser, o Origin) (User, error) {
	if err := may(actor, o); err != nil {
		return User{}, err
	}
	u, err := s.build(ctx, n)
	if err != nil {
		return User{}, err
	}
	if u, err = s.st.CreateUser(ctx, u); err != nil {
		return User{}, err
	}
	s.audit(ctx, actor, o, "user.create", userObject(u.ID), nil, auditUser(u))
	return u, nil
}

// SetRole changes a user's role and ends the user's sessions. Admins only. Conflict: the last admin.
func (s *Service) SetRole(ctx context.Context, actor User, userID int64, r Role, o Origin) error {
	if err := may(actor, o); err != nil {
		return err
	}
	if err := checkRole(r); err != nil {
		return err
	}
	return s.change(ctx, actor, userID, o, "user.role", func(u *User) { u.Role = r })
}

// SetDisabled locks a user out and ends the user's sessions, or lets the user in again. Admins only. Conflict: the last
// admin.
func (s *Service) SetDisabled(ctx context.Context, actor User, userID int64, disabled bool, o Origin) error {
	if err := may(actor, o); err != nil {
		return err
	}
	action := "user.enable"
	if disabled {
		action = "user.disable"
	}
	return s.change(ctx, actor, userID, o, action, func(u *User) { u.Disabled = disabled })
}

// change updates a user and ends its sessions, because a session must not outlive the rights it was opened with.
func (s *Service) change(ctx context.Context, actor User, userID int64, o Origin, action string, f func(*User)) error {
	u, err := s.st.UserByID(ctx, userID)
	if err != nil {
		return err
	}
	before := auditUser(u)
	f(&u)
	if err := s.st.UpdateUser(ctx, u); err != nil {
		return err
	}
	s.audit(ctx, actor, o, action, userObject(u.ID), before, auditUser(u))
	return s.dropAll(ctx, userID, nil)
}

// ChangePassword checks the old password, sets the new one and ends the user's sessions except the one whose hash is
// keep. Unauthorized: the old one is wrong. RateLimited: a *RetryError.
func (s *Service) ChangePassword(ctx context.Context, u User, oldPassword, newPassword string, keep []byte, o Origin) error {
	account := "account " + u.Email
	if wait := s.limit.attempt(account, accountFree, accountMost); wait > 0 {
		return retryAfter(wait)
	}
	u, err := s.st.UserByID(ctx, u.ID)
	if err != nil {
		return err
	}
	if len(oldPassword) > MaxPassword {
		oldPassword = ""
	}
	ok, _, err := s.hasher.verify(ctx, oldPassword, u.PasswordHash)
	if err != nil {
		return err
	}
	if !ok {
		s.audit(ctx, u, o, "user.password.failed", userObject(u.ID), nil, nil)
		return &errs.Error{Code: errs.Unauthorized, Field: "old_password", Message: "is wrong"}
	}
	s.limit.forget(account)
	return s.setPassword(ctx, u, u, newPassword, keep, o)
}

// ResetPassword sets a password without the old one and ends the user's sessions. Admins and the command line only.
func (s *Service) ResetPassword(ctx context.Context, actor User, userID int64, newPassword string, o Origin) error {
	if err := may(actor, o); err != nil {
		return err
	}
	u, err := s.st.UserByID(ctx, userID)
	if err != nil {
		return err
	}
	return s.setPassword(ctx, actor, u, newPassword, nil, o)
}

func (s *Service) setPassword(ctx context.Context, actor, u User, password string, keep []byte, o Origin) error {
	if err := checkPassword(password, u.Email, s.common); err != nil {
		return err
	}
	hash, err := s.hasher.hash(ctx, password)
	if err != nil {
		return err
	}
	u.PasswordHash = hash
	if err := s.st.UpdateUser(ctx, u); err != nil {
		return err
	}
	s.audit(ctx, actor, o, "user.password", userObject(u.ID), nil, nil)
	return s.dropAll(ctx, u.ID, keep)
}
