package auth

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"agentrl/internal/errs"
)

// How long a session counts.
const (
	SessionIdle = 12 * time.Hour      // without a request
	SessionAge  = 30 * 24 * time.Hour // in all

	touchEvery = time.Minute // so that reading pages does not write at every request
)

// errSignIn is the one answer to every failed sign-in.
func errSignIn() error {
	return errs.New(errs.Unauthorized, "the e-mail address or the password is wrong")
}

func errSession() error { return errs.New(errs.Unauthorized, "please sign in") }

// RetryError says how long to wait; errs.CodeOf gives RateLimited.
type RetryError struct {
	After time.Duration
	Err   error
}

func (e *RetryError) Error() string { return e.Err.Error() }
func (e *RetryError) Unwrap() error { return e.Err }

func retryAfter(d time.Duration) error {
	d = max(time.Second, d.Round(time.Second))
	return &RetryError{d, errs.New(errs.RateLimited, "too many failed sign-ins; try again in %s", d)}
}

// Login checks the password and returns the id of a new session for the cookie; earlier sessions of the browser are the
// caller's to end. Unauthorized: wrong, with no word on which part. RateLimited: a *RetryError.
func (s *Service) Login(ctx context.Context, email, password string, o Origin) (id string, u User, err error) {
	clean, mailErr := cleanEmail(email)
	account, address := "account "+clean, "address "+o.Addr
	if mailErr != nil {
		account = "account ?"
	}
	if wait := s.limit.attempt(address, addressFree, addressMost); wait > 0 {
		return "", User{}, retryAfter(wait)
	}
	if wait := s.limit.attempt(account, accountFree, accountMost); wait > 0 {
		return "", User{}, retryAfter(wait)
	}
	if mailErr == nil {
		u, err = s.st.UserByEmail(ctx, clean)
		if err != nil && errs.CodeOf(err) != errs.NotFound {
			return "", User{}, err
		}
	}
	hash := u.PasswordHash
	if u.Disabled {
		hash = ""
	}
	if len(password) > MaxPassword {
		password, hash = "", ""
	}
	ok, stale, err := s.hasher.verify(ctx, password, hash)
	if err != nil {
		return "", User{}, err
	}
	if !ok {
		if u.ID != 0 {
			s.audit(ctx, u, o, "login.failed", userObject(u.ID), nil, nil)
		}
		return "", User{}, errSignIn()
	}
	s.limit.forget(account)
	s.limit.takeBack(address)
	if stale {
		s.rehash(ctx, u, password)
	}
	id, err = s.open(ctx, u, o)
	if err != nil {
		return "", User{}, err
	}
	s.audit(ctx, u, o, "login", userObject(u.ID), nil, nil)
	return id, u, nil
}

// rehash stores the password under the present parameters. The sign-in succeeds without it too.
func (s *Service) rehash(ctx context.Context, u User, password string) {
	h, err := s.hasher.hash(ctx, password)
	if err == nil {
		u.PasswordHash = h
		err = s.st.UpdateUser(ctx, u)
	}
	if err != nil {
		s.log.Warn("a password hash could not be renewed", slog.Int64("user", u.ID), slog.Any("error", err))
	}
}

// open starts a session.
func (s *Service) open(ctx context.Context, u User, o Origin) (string, error) {
	id, err := newSecret(s.rand)
	if err != nil {
		return "", err
	}
	now := s.now()
	agent := o.UserAgent
	if len(agent) > 300 {
		agent = agent[:300]
	}
	return id, s.st.CreateSession(ctx, Session{Hash: sum(id), UserID: u.ID, CreatedAt: now, SeenAt: now, UserAgent: agent, Addr: o.Addr})
}

// Authenticate returns the session of a cookie's id and its user. Unauthorized: unknown, too old, or the user is
// disabled.
func (s *Service) Authenticate(ctx context.Context, id string) (Session, User, error) {
	if !isSecret(id) {
		return Session{}, User{}, errSession()
	}
	sess, u, err := s.st.SessionByHash(ctx, sum(id))
	if errs.CodeOf(err) == errs.NotFound && err != nil {
		return Session{}, User{}, errSession()
	}
	if err != nil {
		return Session{}, User{}, err
	}
	now := s.now()
	if !s.counts(sess, now) || u.Disabled {
		return Session{}, User{}, errSession()
	}
	if now.Sub(sess.SeenAt) >= touchEvery {
		if err := s.st.TouchSession(ctx, sess.Hash, now); err != nil {
			s.log.Warn("a session could not be kept alive", slog.Int64("user", u.ID), slog.Any("error", err))
		}
		sess.SeenAt = now
	}
	return sess, u, nil
}

func (s *Service) counts(sess Session, now time.Time) bool {
	return now.Sub(sess.SeenAt) < SessionIdle && now.Sub(sess.CreatedAt) < SessionAge
}

// Logout ends a session; an unknown id is no error.
func (s *Service) Logout(ctx context.Context, id string, o Origin) error {
	if !isSecret(id) {
		return nil
	}
	sess, u, err := s.st.SessionByHash(ctx, sum(id))
	if err != nil {
		if errs.CodeOf(err) == errs.NotFound {
			return nil
		}
		return err
	}
	if err := s.drop(ctx, u.ID, sess.Hash); err != nil {
		return err
	}
	s.audit(ctx, u, o, "logout", userObject(u.ID), nil, nil)
	return nil
}

// Sessions lists a user's sessions that still count, the one used last first. Whether the caller may see them is the
// caller's to check.
func (s *Service) Sessions(ctx context.Context, userID int64) ([]Session, error) {
	list, err := s.st.Sessions(ctx, userID)
	if err != nil {
		return nil, err
	}
	now := s.now()
	list = slices.DeleteFunc(list, func(x Session) bool { return !s.counts(x, now) })
	slices.SortStableFunc(list, func(a, b Session) int { return b.SeenAt.Compare(a.SeenAt) })
	return list, nil
}

// RevokeSession ends one session of a user: of oneself, or of anyone for admins (Forbidden otherwise).
func (s *Service) RevokeSession(ctx context.Context, actor User, userID int64, hash []byte, o Origin) error {
	if actor.ID == 0 || actor.ID != userID {
		if err := may(actor, o); err != nil {
			return err
		}
	}
	if err := s.drop(ctx, userID, hash); err != nil {
		return err
	}
	s.audit(ctx, actor, o, "session.revoke", userObject(userID), nil, nil)
	return nil
}

// drop ends one session.
func (s *Service) drop(ctx context.Context, userID int64, hash []byte) error {
	if err := s.st.DeleteSession(ctx, userID, hash); err != nil && errs.CodeOf(err) != errs.NotFound {
		return err
	}
	s.end(userID, hash)
	return nil
}

// dropAll ends a user's sessions except the one with hash keep.
func (s *Service) dropAll(ctx context.Context, userID int64, keep []byte) error {
	list, err := s.st.Sessions(ctx, userID)
	if err != nil {
		return err
	}
	for _, x := range list {
		if keep != nil && bytes.Equal(x.Hash, keep) {
			continue
		}
		if err := s.drop(ctx, userID, x.Hash); err != nil {
			return err
		}
	}
	if keep == nil {
		s.end(userID, nil)
	}
	return nil
}

func userObject(id int64) string { return "user/" + strconv.FormatInt(id, 10) }
