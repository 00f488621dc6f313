package store

import (
	"context"
	"time"

	"gorm.io/gorm"

	"agentrl/internal/auth"
	"agentrl/internal/errs"
)

type tokenRow struct {
	ID         int64 `gorm:"primaryKey"`
	UserID     int64
	Name       string
	Prefix     string
	Hash       []byte
	Role       string
	CreatedAt  int64 `gorm:"autoCreateTime:false"`
	ExpiresAt  int64
	LastUsedAt int64
	RevokedAt  int64
}

func (tokenRow) TableName() string { return "tokens" }

func (r tokenRow) token() auth.Token {
	return auth.Token{ID: r.ID, UserID: r.UserID, Name: r.Name, Prefix: r.Prefix, Hash: r.Hash, Role: auth.Role(r.Role),
		CreatedAt: fromMicros(r.CreatedAt), ExpiresAt: fromMicros(r.ExpiresAt), LastUsedAt: fromMicros(r.LastUsedAt),
		RevokedAt: fromMicros(r.RevokedAt)}
}

// CreateToken inserts an API token. NotFound: no such user.
func (s *Store) CreateToken(ctx context.Context, t auth.Token) (auth.Token, error) {
	if len(t.Hash) == 0 {
		return auth.Token{}, errs.Field("hash", "a token needs its hash")
	}
	if t.Role.Rank() == 0 {
		return auth.Token{}, errs.Field("role", "%q is not one of viewer, annotator, researcher, admin", t.Role)
	}
	row := tokenRow{UserID: t.UserID, Name: text(t.Name), Prefix: text(t.Prefix), Hash: t.Hash, Role: string(t.Role),
		CreatedAt: micros(t.CreatedAt), ExpiresAt: micros(t.ExpiresAt), LastUsedAt: micros(t.LastUsedAt), RevokedAt: micros(t.RevokedAt)}
	if row.CreatedAt == 0 {
		row.CreatedAt = micros(s.clock())
	}
	err := s.write(ctx, "create token", func(tx *gorm.DB) error {
		if err := exists(tx, &userRow{}, t.UserID, "user"); err != nil {
			return err
		}
		return taken("create token", tx.Create(&row).Error, "this token exists")
	})
	return row.token(), err
}

// TokenByHash returns a token and its user. NotFound. Expiry, revocation and disabled users are the caller's to judge.
func (s *Store) TokenByHash(ctx context.Context, hash []byte) (auth.Token, auth.User, error) {
	var row tokenRow
	if err := s.read(ctx).Where("hash = ?", hash).Take(&row).Error; err != nil {
		return auth.Token{}, auth.User{}, missing("token", err, "such token")
	}
	u, err := s.UserByID(ctx, row.UserID)
	return row.token(), u, err
}

// Tokens lists a user's tokens, newest first, revoked ones included.
func (s *Store) Tokens(ctx context.Context, userID int64) ([]auth.Token, error) {
	var rows []tokenRow
	if err := s.read(ctx).Where("user_id = ?", userID).Order("id DESC").Find(&rows).Error; err != nil {
		return nil, fail("tokens", err)
	}
	out := make([]auth.Token, len(rows))
	for i, r := range rows {
		out[i] = r.token()
	}
	return out, nil
}

// RevokeToken ends a token of a user; the first time stays when it is called again. NotFound.
func (s *Store) RevokeToken(ctx context.Context, userID, id int64, at time.Time) error {
	return s.write(ctx, "revoke token", func(tx *gorm.DB) error {
		return need(tx.Model(&tokenRow{}).Where("id = ? AND user_id = ?", id, userID).
			Update("revoked_at", gorm.Expr("CASE WHEN revoked_at = 0 THEN ? ELSE revoked_at END", micros(at))), "token %d", id)
	})
}

// TouchToken notes when a token was last used.
func (s *Store) TouchToken(ctx context.Context, id int64, at time.Time) error {
	return s.write(ctx, "touch token", func(tx *gorm.DB) error {
		return tx.Model(&tokenRow{}).Where("id = ? AND last_used_at < ?", id, micros(at)).Update("last_used_at", micros(at)).Error
	})
}
