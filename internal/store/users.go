package store

import (
	"context"
	"strings"

	"gorm.io/gorm"

	"agentrl/internal/auth"
	"agentrl/internal/errs"
)

type userRow struct {
	ID           int64 `gorm:"primaryKey"`
	Email        string
	Name         string
	Role         string
	PasswordHash string
	Disabled     bool
	Prefs        string
	CreatedAt    int64 `gorm:"autoCreateTime:false"`
	LastSeenAt   int64
}

func (userRow) TableName() string { return "users" }

func userToRow(u auth.User) userRow {
	return userRow{ID: u.ID, Email: normalEmail(u.Email), Name: text(u.Name), Role: string(u.Role), PasswordHash: u.PasswordHash,
		Disabled: u.Disabled, Prefs: text(u.Prefs), CreatedAt: micros(u.CreatedAt), LastSeenAt: micros(u.LastSeenAt)}
}

func (r userRow) user() auth.User {
	return auth.User{ID: r.ID, Email: r.Email, Name: r.Name, Role: auth.Role(r.Role), PasswordHash: r.PasswordHash,
		Disabled: r.Disabled, Prefs: r.Prefs, CreatedAt: fromMicros(r.CreatedAt), LastSeenAt: fromMicros(r.LastSeenAt)}
}

// normalEmail is the form in which addresses are unique: people do not remember how they capitalised them.
func normalEmail(s string) string { return strings.ToLower(strings.TrimSpace(text(s))) }

// CountUsers returns how many users there are, disabled ones included.
func (s *Store) CountUsers(ctx context.Context) (int64, error) {
	var n int64
	err := s.read(ctx).Model(&userRow{}).Count(&n).Error
	return n, fail("count users", err)
}

// CreateUser inserts a user. Conflict: the address is taken, in any spelling of upper and lower case.
func (s *Store) CreateUser(ctx context.Context, u auth.User) (auth.User, error) {
	if normalEmail(u.Email) == "" {
		return auth.User{}, errs.Field("email", "an address is needed")
	}
	if u.Role.Rank() == 0 {
		return auth.User{}, errs.Field("role", "%q is not one of viewer, annotator, researcher, admin", u.Role)
	}
	row := userToRow(u)
	row.ID = 0
	if row.CreatedAt == 0 {
		row.CreatedAt = micros(s.clock())
	}
	err := s.write(ctx, "create user", func(tx *gorm.DB) error {
		return taken("create user", tx.Create(&row).Error, "the address %s is taken", row.Email)
	})
	return row.user(), err
}

// UserByID returns a user. NotFound.
func (s *Store) UserByID(ctx context.Context, id int64) (auth.User, error) {
	var row userRow
	err := s.read(ctx).Where("id = ?", id).Take(&row).Error
	return row.user(), missing("user", err, "user %d", id)
}

// UserByEmail returns a user, ignoring case. NotFound.
func (s *Store) UserByEmail(ctx context.Context, email string) (auth.User, error) {
	var row userRow
	err := s.read(ctx).Where("email = ?", normalEmail(email)).Take(&row).Error
	return row.user(), missing("user", err, "user with this address")
}

// ListUsers returns all users by id.
func (s *Store) ListUsers(ctx context.Context) ([]auth.User, error) {
	var rows []userRow
	if err := s.read(ctx).Order("id").Find(&rows).Error; err != nil {
		return nil, fail("list users", err)
	}
	out := make([]auth.User, len(rows))
	for i, r := range rows {
		out[i] = r.user()
	}
	return out, nil
}

// UpdateUser replaces all fields of a user except the time of creation. Conflict: the address is taken, or no enabled
// admin would be left.
func (s *Store) UpdateUser(ctx context.Context, u auth.User) error {
	if normalEmail(u.Email) == "" {
		return errs.Field("email", "an address is needed")
	}
	if u.Role.Rank() == 0 {
		return errs.Field("role", "%q is not one of viewer, annotator, researcher, admin", u.Role)
	}
	row := userToRow(u)
	return s.write(ctx, "update user", func(tx *gorm.DB) error {
		// All admins are locked in one order, so that two of them cannot remove each other at once.
		var admins []userRow
		if err := forUpdate(tx).Where("role = ? AND NOT disabled", string(auth.Admin)).Order("id").Find(&admins).Error; err != nil {
			return err
		}
		stays := u.Role == auth.Admin && !u.Disabled
		if !stays && len(admins) == 1 && admins[0].ID == u.ID {
			return errs.New(errs.Conflict, "this is the last enabled admin; make another user admin first")
		}
		res := tx.Model(&userRow{}).Where("id = ?", u.ID).
			Select("email", "name", "role", "password_hash", "disabled", "prefs", "last_seen_at").Updates(&row)
		if res.Error != nil {
			return taken("update user", res.Error, "the address %s is taken", row.Email)
		}
		return need(res, "user %d", u.ID)
	})
}
