package auth

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"
)

var errTodo = errors.New("not built yet")

// Store is what the service needs of the database.
type Store interface {
	CountUsers(ctx context.Context) (int64, error)
	CreateUser(ctx context.Context, u User) (User, error)
	UserByID(ctx context.Context, id int64) (User, error)
	UserByEmail(ctx context.Context, email string) (User, error)
	ListUsers(ctx context.Context) ([]User, error)
	UpdateUser(ctx context.Context, u User) error
	CreateSession(ctx context.Context, s Session) error
	SessionByHash(ctx context.Context, hash []byte) (Session, User, error)
	TouchSession(ctx context.Context, hash []byte, at time.Time) error
	Sessions(ctx context.Context, userID int64) ([]Session, error)
	DeleteSession(ctx context.Context, userID int64, hash []byte) error
	DeleteSessionsBefore(ctx context.Context, createdBefore, seenBefore time.Time) (int64, error)
	CreateToken(ctx context.Context, t Token) (Token, error)
	TokenByHash(ctx context.Context, hash []byte) (Token, User, error)
	Tokens(ctx context.Context, userID int64) ([]Token, error)
	RevokeToken(ctx context.Context, userID, id int64, at time.Time) error
	TouchToken(ctx context.Context, id int64, at time.Time) error
	Audit(ctx context.Context, e AuditEntry) error
	Setting(ctx context.Context, key string) (string, error)
	SetSetting(ctx context.Context, key, value string) error
}

// Options is what a Service is built from besides its store.
type Options struct {
	Logger *slog.Logger
	Now    func() time.Time // nil: time.Now
	Rand   io.Reader        // nil: crypto/rand
	Cores  int              // passwords hashed at once; 0: number of CPUs
}

// Origin says where a request comes from, for sessions, limits and the audit record.
type Origin struct {
	Addr      string // IP address without port
	UserAgent string
}

// NewUser is what a person is created from.
type NewUser struct {
	Email, Name, Password string
	Role                  Role
}

// Service signs people in and checks sessions and tokens. Safe for concurrent use.
type Service struct{}

// NewService needs no Start; call Prune now and then.
func NewService(st Store, o Options) (*Service, error) { return nil, errTodo }

// NeedsSetup reports whether no user exists yet.
func (s *Service) NeedsSetup(ctx context.Context) (bool, error) { return false, errTodo }

// SetupToken makes the one-time token that creates the first admin; earlier ones end. Conflict: a user exists.
func (s *Service) SetupToken(ctx context.Context) (string, error) { return "", errTodo }

// CheckSetup reports whether token would be accepted now: Unauthorized if not, Conflict when a user exists.
func (s *Service) CheckSetup(ctx context.Context, token string) error { return errTodo }

// CompleteSetup creates the first admin and signs it in; the result is the session id for the cookie.
func (s *Service) CompleteSetup(ctx context.Context, token string, n NewUser, o Origin) (id string, u User, err error) {
	return "", User{}, errTodo
}

// Login returns a new session id. Unauthorized: wrong, with no word on which part. RateLimited: *RetryError.
func (s *Service) Login(ctx context.Context, email, password string, o Origin) (id string, u User, err error) {
	return "", User{}, errTodo
}

// RetryError says how long to wait; errs.CodeOf gives RateLimited.
type RetryError struct {
	After time.Duration
	Err   error
}

func (e *RetryError) Error() string { return e.Err.Error() }
func (e *RetryError) Unwrap() error { return e.Err }

// Authenticate returns the session of a cookie's id and its user. Unauthorized: unknown, too old or disabled.
func (s *Service) Authenticate(ctx context.Context, id string) (Session, User, error) {
	return Session{}, User{}, errTodo
}

// Logout ends a session; an unknown id is no error.
func (s *Service) Logout(ctx context.Context, id string, o Origin) error { return errTodo }

// Sessions lists a user's sessions that still count, newest first.
func (s *Service) Sessions(ctx context.Context, userID int64) ([]Session, error) { return nil, errTodo }

// RevokeSession ends one session of a user.
func (s *Service) RevokeSession(ctx context.Context, actor User, userID int64, hash []byte, o Origin) error {
	return errTodo
}

// AuthenticateToken returns an API token and its user; the user's Role is capped to the token's.
func (s *Service) AuthenticateToken(ctx context.Context, plain string) (Token, User, error) {
	return Token{}, User{}, errTodo
}

// CreateToken returns the plain token, which is shown once. ttl 0: never expires.
func (s *Service) CreateToken(ctx context.Context, u User, name string, role Role, ttl time.Duration, o Origin) (plain string, t Token, err error) {
	return "", Token{}, errTodo
}

// Tokens lists a user's tokens.
func (s *Service) Tokens(ctx context.Context, userID int64) ([]Token, error) { return nil, errTodo }

// RevokeToken ends a token of a user.
func (s *Service) RevokeToken(ctx context.Context, actor User, userID, id int64, o Origin) error {
	return errTodo
}

// CreateUser needs an admin as actor, or the zero User for the command line.
func (s *Service) CreateUser(ctx context.Context, actor User, n NewUser, o Origin) (User, error) {
	return User{}, errTodo
}

// SetRole changes a user's role and ends the user's sessions.
func (s *Service) SetRole(ctx context.Context, actor User, userID int64, r Role, o Origin) error {
	return errTodo
}

// SetDisabled locks a user out, or lets it in again.
func (s *Service) SetDisabled(ctx context.Context, actor User, userID int64, disabled bool, o Origin) error {
	return errTodo
}

// ChangePassword checks the old password, sets the new one and ends the user's other sessions.
func (s *Service) ChangePassword(ctx context.Context, u User, oldPassword, newPassword string, keep []byte, o Origin) error {
	return errTodo
}

// ResetPassword sets a password without the old one, for admins and the command line.
func (s *Service) ResetPassword(ctx context.Context, actor User, userID int64, newPassword string, o Origin) error {
	return errTodo
}

// Record writes one audit entry; before and after are JSON-encoded.
func (s *Service) Record(ctx context.Context, actor User, o Origin, action, object string, before, after any) error {
	return errTodo
}

// Prune deletes sessions that are too old and forgets old login failures.
func (s *Service) Prune(ctx context.Context) error { return errTodo }
