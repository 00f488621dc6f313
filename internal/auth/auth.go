// Package auth holds users, roles, sessions, API tokens and the audit record.
package auth

import "time"

// Role is what a user may do. Roles are ordered: a higher one may do all that a lower one may.
type Role string

// The roles, lowest first.
const (
	Viewer     Role = "viewer"
	Annotator  Role = "annotator"
	Researcher Role = "researcher"
	Admin      Role = "admin"
)

// Rank orders the roles; an unknown role has rank 0 and may do nothing.
func (r Role) Rank() int {
	switch r {
	case Viewer:
		return 1
	case Annotator:
		return 2
	case Researcher:
		return 3
	case Admin:
		return 4
	}
	return 0
}

// Allows reports whether r may do what needs at least min.
func (r Role) Allows(min Role) bool { return r.Rank() > 0 && r.Rank() >= min.Rank() }

// User is a person who signs in. PasswordHash is an argon2id string.
type User struct {
	ID           int64
	Email        string
	Name         string
	Role         Role
	PasswordHash string
	Disabled     bool
	Prefs        string // JSON: table columns, density, shortcuts
	CreatedAt    time.Time
	LastSeenAt   time.Time
}

// Session is a signed-in browser. Only the SHA-256 of its id is stored.
type Session struct {
	Hash      []byte
	UserID    int64
	CreatedAt time.Time
	SeenAt    time.Time
	UserAgent string
	Addr      string
}

// Token is an API token. Only its SHA-256 is stored; Prefix is shown to tell tokens apart.
type Token struct {
	ID         int64
	UserID     int64
	Name       string
	Prefix     string
	Hash       []byte
	Role       Role // at most the user's own
	CreatedAt  time.Time
	ExpiresAt  time.Time // zero: never
	LastUsedAt time.Time
	RevokedAt  time.Time // zero: valid
}

// AuditEntry is one line of the append-only record of who changed what.
type AuditEntry struct {
	ID     int64
	At     time.Time
	UserID int64 // 0: system
	Email  string
	Addr   string
	Action string // "run.create", "user.role", ...
	Object string // "run/12"
	Before string
	After  string
}
