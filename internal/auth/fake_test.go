package auth

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alexedwards/argon2id"

	"agentrl/internal/errs"
)

// fake is the store in memory.
type fake struct {
	mu       sync.Mutex
	users    []User
	sessions []Session
	tokens   []Token
	audit    []AuditEntry
	settings map[string]string
	touches  int
	down     error
}

func gone(what string) error { return errs.New(errs.NotFound, "no %s", what) }

func (f *fake) CountUsers(context.Context) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.users)), f.down
}

func (f *fake) CreateUser(_ context.Context, u User) (User, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, x := range f.users {
		if x.Email == u.Email {
			return User{}, errs.New(errs.Conflict, "taken")
		}
	}
	u.ID = int64(len(f.users) + 1)
	f.users = append(f.users, u)
	return u, nil
}

func (f *fake) user(ok func(User) bool) (User, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down != nil {
		return User{}, f.down
	}
	if i := slices.IndexFunc(f.users, ok); i >= 0 {
		return f.users[i], nil
	}
	return User{}, gone("user")
}

func (f *fake) UserByID(_ context.Context, id int64) (User, error) {
	return f.user(func(u User) bool { return u.ID == id })
}

func (f *fake) UserByEmail(_ context.Context, email string) (User, error) {
	return f.user(func(u User) bool { return u.Email == email })
}

func (f *fake) UpdateUser(_ context.Context, u User) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users[u.ID-1] = u
	return nil
}

func (f *fake) CreateSession(_ context.Context, s Session) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions = append(f.sessions, s)
	return nil
}

func (f *fake) SessionByHash(ctx context.Context, hash []byte) (Session, User, error) {
	f.mu.Lock()
	i := slices.IndexFunc(f.sessions, func(s Session) bool { return bytes.Equal(s.Hash, hash) })
	var s Session
	if i >= 0 {
		s = f.sessions[i]
	}
	f.mu.Unlock()
	if i < 0 {
		return Session{}, User{}, gone("session")
	}
	u, err := f.UserByID(ctx, s.UserID)
	return s, u, err
}

func (f *fake) TouchSession(_ context.Context, hash []byte, at time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.sessions {
		if bytes.Equal(f.sessions[i].Hash, hash) {
			f.sessions[i].SeenAt = at
			f.touches++
		}
	}
	return nil
}

func (f *fake) Sessions(_ context.Context, userID int64) (out []Session, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.sessions {
		if s.UserID == userID {
			out = append(out, s)
		}
	}
	return out, nil
}

func (f *fake) DeleteSession(_ context.Context, userID int64, hash []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.sessions)
	f.sessions = slices.DeleteFunc(f.sessions, func(s Session) bool { return s.UserID == userID && bytes.Equal(s.Hash, hash) })
	if n == len(f.sessions) {
		return gone("session")
	}
	return nil
}

func (f *fake) DeleteSessionsBefore(_ context.Context, created, seen time.Time) (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.sessions)
	f.sessions = slices.DeleteFunc(f.sessions, func(s Session) bool { return s.CreatedAt.Before(created) || s.SeenAt.Before(seen) })
	return int64(n - len(f.sessions)), nil
}

func (f *fake) CreateToken(_ context.Context, t Token) (Token, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t.ID = int64(len(f.tokens) + 1)
	f.tokens = append(f.tokens, t)
	return t, nil
}

func (f *fake) TokenByHash(ctx context.Context, hash []byte) (Token, User, error) {
	f.mu.Lock()
	i := slices.IndexFunc(f.tokens, func(t Token) bool { return bytes.Equal(t.Hash, hash) })
	var t Token
	if i >= 0 {
		t = f.tokens[i]
	}
	f.mu.Unlock()
	if i < 0 {
		return Token{}, User{}, gone("token")
	}
	u, err := f.UserByID(ctx, t.UserID)
	return t, u, err
}

func (f *fake) Tokens(_ context.Context, userID int64) (out []Token, _ error) {
	for _, t := range f.tokens {
		if t.UserID == userID {
			out = append(out, t)
		}
	}
	return out, nil
}

func (f *fake) RevokeToken(_ context.Context, userID, id int64, at time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.tokens {
		if f.tokens[i].ID == id && f.tokens[i].UserID == userID {
			f.tokens[i].RevokedAt = at
			return nil
		}
	}
	return gone("token")
}

func (f *fake) TouchToken(_ context.Context, id int64, at time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tokens[id-1].LastUsedAt = at
	f.touches++
	return nil
}

func (f *fake) Audit(_ context.Context, e AuditEntry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.audit = append(f.audit, e)
	return f.down
}

func (f *fake) Setting(_ context.Context, key string) (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if v, ok := f.settings[key]; ok {
		return v, nil
	}
	return "", gone("setting")
}

func (f *fake) SetSetting(_ context.Context, key, value string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.settings[key] = value
	return nil
}

func (f *fake) actions() (out []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.audit {
		out = append(out, e.Action)
	}
	return out
}

// kit is a service on a fake store with a clock that only tests move.
type kit struct {
	*Service
	st *fake
	mu sync.Mutex
	at time.Time
}

const goodPassword = "four quiet green lamps"

var cheap = &argon2id.Params{Memory: 64, Iterations: 1, Parallelism: 1, SaltLength: 16, KeyLength: 32}

func newKit(t *testing.T) *kit {
	t.Helper()
	k := &kit{st: &fake{settings: map[string]string{}}, at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	s, err := NewService(k.st, Options{Hash: cheap, Cores: 2, Now: func() time.Time {
		k.mu.Lock()
		defer k.mu.Unlock()
		return k.at
	}})
	if err != nil {
		t.Fatal(err)
	}
	k.Service = s
	return k
}

func (k *kit) advance(d time.Duration) {
	k.mu.Lock()
	k.at = k.at.Add(d)
	k.mu.Unlock()
}

var shell = Origin{Addr: CommandLine}

func from(addr string) Origin { return Origin{Addr: addr, UserAgent: "test"} }

func (k *kit) person(t *testing.T, email string, r Role) User {
	t.Helper()
	u, err := k.CreateUser(t.Context(), User{}, NewUser{Email: email, Name: "N", Password: goodPassword, Role: r}, shell)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (k *kit) signIn(t *testing.T, email string) string {
	t.Helper()
	id, _, err := k.Login(t.Context(), email, goodPassword, from("10.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func wantCode(t *testing.T, what string, err error, code errs.Code) {
	t.Helper()
	if err == nil || errs.CodeOf(err) != code {
		t.Errorf("%s: error %v, want code %s", what, err, code)
	}
}
