package store

import (
	"context"
	"time"

	"gorm.io/gorm"

	"agentrl/internal/auth"
	"agentrl/internal/errs"
)

type sessionRow struct {
	Hash      []byte `gorm:"primaryKey"`
	UserID    int64
	CreatedAt int64 `gorm:"autoCreateTime:false"`
	SeenAt    int64
	UserAgent string
	Addr      string
}

func (sessionRow) TableName() string { return "sessions" }

func (r sessionRow) session() auth.Session {
	return auth.Session{Hash: r.Hash, UserID: r.UserID, CreatedAt: fromMicros(r.CreatedAt), SeenAt: fromMicros(r.SeenAt),
		UserAgent: r.UserAgent, Addr: r.Addr}
}

// CreateSession inserts a session. NotFound: no such user.
func (s *Store) CreateSession(ctx context.Context, v auth.Session) error {
	if len(v.Hash) == 0 {
		return errs.Field("hash", "a session needs the hash of its id")
	}
	row := sessionRow{Hash: v.Hash, UserID: v.UserID, CreatedAt: micros(v.CreatedAt), SeenAt: micros(v.SeenAt),
		UserAgent: text(v.UserAgent), Addr: text(v.Addr)}
	return s.write(ctx, "create session", func(tx *gorm.DB) error {
		if err := exists(tx, &userRow{}, v.UserID, "user"); err != nil {
			return err
		}
		return taken("create session", tx.Create(&row).Error, "this session exists")
	})
}

// SessionByHash returns a session and its user. NotFound. Age limits and disabled users are the caller's to judge.
func (s *Store) SessionByHash(ctx context.Context, hash []byte) (auth.Session, auth.User, error) {
	var row sessionRow
	if err := s.read(ctx).Where("hash = ?", hash).Take(&row).Error; err != nil {
		return auth.Session{}, auth.User{}, missing("session", err, "such session")
	}
	u, err := s.UserByID(ctx, row.UserID)
	return row.session(), u, err
}

// TouchSession notes when a session was last used. A session that is gone is no error.
func (s *Store) TouchSession(ctx context.Context, hash []byte, at time.Time) error {
	return s.write(ctx, "touch session", func(tx *gorm.DB) error {
		return tx.Model(&sessionRow{}).Where("hash = ? AND seen_at < ?", hash, micros(at)).Update("seen_at", micros(at)).Error
	})
}

// Sessions lists a user's sessions, last used first.
func (s *Store) Sessions(ctx context.Context, userID int64) ([]auth.Session, error) {
	var rows []sessionRow
	if err := s.read(ctx).Where("user_id = ?", userID).Order("seen_at DESC, hash").Find(&rows).Error; err != nil {
		return nil, fail("sessions", err)
	}
	out := make([]auth.Session, len(rows))
	for i, r := range rows {
		out[i] = r.session()
	}
	return out, nil
}

// DeleteSession ends a session of a user. NotFound.
func (s *Store) DeleteSession(ctx context.Context, userID int64, hash []byte) error {
	return s.write(ctx, "delete session", func(tx *gorm.DB) error {
		return need(tx.Where("user_id = ? AND hash = ?", userID, hash).Delete(&sessionRow{}), "such session")
	})
}

// DeleteSessionsBefore removes sessions made or last used before the given times and returns how many.
func (s *Store) DeleteSessionsBefore(ctx context.Context, createdBefore, seenBefore time.Time) (int64, error) {
	var n int64
	err := s.write(ctx, "delete sessions", func(tx *gorm.DB) error {
		res := tx.Where("created_at < ? OR seen_at < ?", micros(createdBefore), micros(seenBefore)).Delete(&sessionRow{})
		n = res.RowsAffected
		return res.Error
	})
	return n, err
}

// exists returns NotFound unless the table of model has a row with this id.
func exists(tx *gorm.DB, model any, id int64, what string) error {
	var n int64
	if err := tx.Model(model).Where("id = ?", id).Count(&n).Error; err != nil {
		return err
	}
	if n == 0 {
		return errs.New(errs.NotFound, "there is no %s %d", what, id)
	}
	return nil
}
