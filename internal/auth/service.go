package auth

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/mail"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/alexedwards/argon2id"

	"agentrl/internal/errs"
)

// Store is what the service needs of the database. Missing rows are *errs.Error with NotFound.
type Store interface {
	CountUsers(ctx context.Context) (int64, error)
	CreateUser(ctx context.Context, u User) (User, error)
	UserByID(ctx context.Context, id int64) (User, error)
	UserByEmail(ctx context.Context, email string) (User, error)
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
	Hash   *argon2id.Params // nil: 19 MiB, 2 passes, 1 lane
}

// CommandLine is the address of changes made on the server's own command line. Only from there may the zero User act.
const CommandLine = "command line"

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
type Service struct {
	st     Store
	log    *slog.Logger
	now    func() time.Time
	rand   io.Reader
	hasher *hasher
	limit  *limiter
	common map[string]bool
	setup  sync.Mutex // one first admin only

	mu    sync.Mutex
	ended []func(userID int64, hash []byte)
}

// NewService needs no Start; call Prune now and then.
func NewService(st Store, o Options) (*Service, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Rand == nil {
		o.Rand = rand.Reader
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	h, err := newHasher(o.Hash, o.Cores)
	if err != nil {
		return nil, err
	}
	return &Service{st: st, log: o.Logger, now: o.Now, rand: o.Rand, hasher: h, limit: newLimiter(o.Now), common: commonWords()}, nil
}

// OnEnd calls f whenever sessions end before their time: the one with that hash, or with a nil hash all of the user.
// What was opened with them, such as sockets, must be closed. Register before serving.
func (s *Service) OnEnd(f func(userID int64, hash []byte)) {
	s.mu.Lock()
	s.ended = append(s.ended, f)
	s.mu.Unlock()
}

func (s *Service) end(userID int64, hash []byte) {
	s.mu.Lock()
	fs := s.ended
	s.mu.Unlock()
	for _, f := range fs {
		f(userID, hash)
	}
}

// Prune deletes sessions that are too old and forgets old login failures.
func (s *Service) Prune(ctx context.Context) error {
	s.limit.prune()
	now := s.now()
	_, err := s.st.DeleteSessionsBefore(ctx, now.Add(-SessionAge), now.Add(-SessionIdle))
	return err
}

// may is the permission rule of everything that concerns another account: admins, and the command line.
func may(actor User, o Origin) error {
	if actor.ID == 0 && o.Addr == CommandLine {
		return nil
	}
	if actor.ID != 0 && !actor.Disabled && actor.Role.Allows(Admin) {
		return nil
	}
	return errs.New(errs.Forbidden, "this needs the role admin")
}

// cleanEmail returns the address in the form that is stored.
func cleanEmail(email string) (string, error) {
	email = strings.ToLower(strings.TrimSpace(email))
	a, err := mail.ParseAddress(email)
	if err != nil || a.Address != email || len(email) > 254 || !utf8.ValidString(email) {
		return "", errs.Field("email", "is not an e-mail address such as ada@example.org")
	}
	return email, nil
}

func cleanName(name string) (string, error) {
	name = strings.TrimSpace(name)
	if !utf8.ValidString(name) || utf8.RuneCountInString(name) > 100 || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) {
		return "", errs.Field("name", "must be at most 100 characters on one line")
	}
	return name, nil
}

func checkRole(r Role) error {
	if r.Rank() == 0 {
		return errs.Field("role", "%q is not a role; allowed are admin, researcher, annotator and viewer", r)
	}
	return nil
}
