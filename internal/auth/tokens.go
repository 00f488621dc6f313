package auth

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"agentrl/internal/errs"
)

// AuthenticateToken returns an API token and its user, whose Role is the lower of its own and the token's.
// Unauthorized: unknown, revoked, expired, or the user is disabled.
func (s *Service) AuthenticateToken(ctx context.Context, plain string) (Token, User, error) {
	refused := errs.New(errs.Unauthorized, "the API token is not valid")
	if !isToken(plain) {
		return Token{}, User{}, refused
	}
	t, u, err := s.st.TokenByHash(ctx, sum(plain))
	if err != nil {
		if errs.CodeOf(err) == errs.NotFound {
			return Token{}, User{}, refused
		}
		return Token{}, User{}, err
	}
	now := s.now()
	if !t.RevokedAt.IsZero() || !t.ExpiresAt.IsZero() && !now.Before(t.ExpiresAt) || u.Disabled {
		return Token{}, User{}, refused
	}
	if now.Sub(t.LastUsedAt) >= touchEvery {
		if err := s.st.TouchToken(ctx, t.ID, now); err != nil {
			s.log.Warn("the use of an API token could not be noted", slog.Int64("token", t.ID), slog.Any("error", err))
		}
		t.LastUsedAt = now
	}
	if t.Role.Rank() < u.Role.Rank() {
		u.Role = t.Role
	}
	return t, u, nil
}

// CreateToken makes an API token for u with at most u's role and returns the plain text, which cannot be shown again.
// ttl 0: never expires. Invalid: name, role or ttl. Forbidden: a role above u's.
func (s *Service) CreateToken(ctx context.Context, u User, name string, role Role, ttl time.Duration, o Origin) (plain string, t Token, err error) {
	name = strings.TrimSpace(name)
	if name == "" || !utf8.ValidString(name) || utf8.RuneCountInString(name) > 100 {
		return "", Token{}, errs.Field("name", "a token needs a name of 1 to 100 characters that says what it is for")
	}
	if err := checkRole(role); err != nil {
		return "", Token{}, err
	}
	if role.Rank() > u.Role.Rank() {
		return "", Token{}, &errs.Error{Code: errs.Forbidden, Field: "role", Message: "is above your own role " + string(u.Role)}
	}
	if ttl < 0 {
		return "", Token{}, errs.Field("expires", "lies in the past")
	}
	if plain, err = newToken(s.rand); err != nil {
		return "", Token{}, err
	}
	now := s.now()
	t = Token{UserID: u.ID, Name: name, Prefix: plain[:shownChars], Hash: sum(plain), Role: role, CreatedAt: now}
	if ttl > 0 {
		t.ExpiresAt = now.Add(ttl)
	}
	if t, err = s.st.CreateToken(ctx, t); err != nil {
		return "", Token{}, err
	}
	s.audit(ctx, u, o, "token.create", tokenObject(t.ID), nil, map[string]any{"name": name, "role": role, "prefix": t.Prefix, "expires": t.ExpiresAt})
	return plain, t, nil
}

// Tokens lists a user's tokens. Whether the caller may see them is the caller's to check.
func (s *Service) Tokens(ctx context.Context, userID int64) ([]Token, error) {
	return s.st.Tokens(ctx, userID)
}

// RevokeToken ends a token of a user: of oneself, or of anyone for admins (Forbidden otherwise). NotFound.
func (s *Service) RevokeToken(ctx context.Context, actor User, userID, id int64, o Origin) error {
	if actor.ID == 0 || actor.ID != userID {
		if err := may(actor, o); err != nil {
			return err
		}
	}
	if err := s.st.RevokeToken(ctx, userID, id, s.now()); err != nil {
		return err
	}
	s.audit(ctx, actor, o, "token.revoke", tokenObject(id), nil, nil)
	return nil
}

func tokenObject(id int64) string { return "token/" + strconv.FormatInt(id, 10) }
