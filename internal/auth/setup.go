package auth

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"log/slog"

	"agentrl/internal/errs"
)

// setupKey is the setting that holds the SHA-256 of the setup token.
const setupKey = "setup_token"

func errSetUp() error { return errs.New(errs.Conflict, "an account exists already; please sign in") }

// NeedsSetup reports whether no user exists yet.
func (s *Service) NeedsSetup(ctx context.Context) (bool, error) {
	n, err := s.st.CountUsers(ctx)
	return n == 0, err
}

// SetupToken makes the one-time token that creates the first admin; earlier ones end. Only its hash is kept, so print
// it now. Conflict: a user exists.
func (s *Service) SetupToken(ctx context.Context) (string, error) {
	s.setup.Lock()
	defer s.setup.Unlock()
	needs, err := s.NeedsSetup(ctx)
	if err != nil {
		return "", err
	}
	if !needs {
		return "", errSetUp()
	}
	t, err := newSecret(s.rand)
	if err != nil {
		return "", err
	}
	return t, s.st.SetSetting(ctx, setupKey, hex.EncodeToString(sum(t)))
}

// CheckSetup reports whether token would be accepted now: Unauthorized if not, Conflict when a user exists.
func (s *Service) CheckSetup(ctx context.Context, token string) error {
	needs, err := s.NeedsSetup(ctx)
	if err != nil {
		return err
	}
	if !needs {
		return errSetUp()
	}
	want, err := s.st.Setting(ctx, setupKey)
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return err
	}
	got := hex.EncodeToString(sum(token))
	if want == "" || !isSecret(token) || subtle.ConstantTimeCompare([]byte(want), []byte(got)) != 1 {
		return errs.New(errs.Unauthorized, "this setup link is not valid; the server prints a new one when it starts")
	}
	return nil
}

// CompleteSetup creates the first admin, whatever role n names, and signs it in; the result is the session id for the
// cookie. Errors as CheckSetup, and Invalid for what is wrong with n.
func (s *Service) CompleteSetup(ctx context.Context, token string, n NewUser, o Origin) (id string, u User, err error) {
	if wait := s.limit.attempt("address "+o.Addr, addressFree, addressMost); wait > 0 {
		return "", User{}, retryAfter(wait)
	}
	s.setup.Lock()
	defer s.setup.Unlock()
	if err := s.CheckSetup(ctx, token); err != nil {
		return "", User{}, err
	}
	s.limit.takeBack("address " + o.Addr)
	n.Role = Admin
	u, err = s.build(ctx, n)
	if err != nil {
		return "", User{}, err
	}
	if u, err = s.st.CreateUser(ctx, u); err != nil {
		return "", User{}, err
	}
	if err := s.st.SetSetting(ctx, setupKey, ""); err != nil {
		s.log.Warn("the used setup token could not be removed; it is not accepted any more", slog.Any("error", err))
	}
	s.audit(ctx, u, o, "setup", userObject(u.ID), nil, auditUser(u))
	id, err = s.open(ctx, u, o)
	return id, u, err
}
