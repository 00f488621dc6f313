package store

import (
	"context"
	"math"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentrl/internal/auth"
)

type auditRow struct {
	ID         int64 `gorm:"primaryKey"`
	At         int64
	UserID     int64
	Email      string
	Addr       string
	Action     string
	Object     string
	BeforeText string
	AfterText  string
}

func (auditRow) TableName() string { return "audit" }

// Audit appends an entry. The database refuses to change or delete entries.
func (s *Store) Audit(ctx context.Context, e auth.AuditEntry) error {
	row := auditRow{At: micros(e.At), UserID: e.UserID, Email: text(e.Email), Addr: text(e.Addr), Action: text(e.Action),
		Object: text(e.Object), BeforeText: text(e.Before), AfterText: text(e.After)}
	if row.At == 0 {
		row.At = micros(s.clock())
	}
	return s.write(ctx, "audit", func(tx *gorm.DB) error { return tx.Create(&row).Error })
}

// AuditLog lists entries with ids below before (0: from the newest), newest first.
func (s *Store) AuditLog(ctx context.Context, before int64, limit int) ([]auth.AuditEntry, error) {
	_, limit, err := page(0, limit)
	if err != nil {
		return nil, err
	}
	if before <= 0 {
		before = math.MaxInt64
	}
	var rows []auditRow
	if err := s.read(ctx).Where("id < ?", before).Order("id DESC").Limit(limit).Find(&rows).Error; err != nil {
		return nil, fail("audit log", err)
	}
	out := make([]auth.AuditEntry, len(rows))
	for i, r := range rows {
		out[i] = auth.AuditEntry{ID: r.ID, At: fromMicros(r.At), UserID: r.UserID, Email: r.Email, Addr: r.Addr,
			Action: r.Action, Object: r.Object, Before: r.BeforeText, After: r.AfterText}
	}
	return out, nil
}

type settingRow struct {
	Name  string `gorm:"primaryKey"`
	Value string
}

func (settingRow) TableName() string { return "settings" }

// Setting returns a stored value. NotFound when it was never set.
func (s *Store) Setting(ctx context.Context, key string) (string, error) {
	var row settingRow
	err := s.read(ctx).Where("name = ?", key).Take(&row).Error
	return row.Value, missing("setting", err, "setting %q", key)
}

// SetSetting stores a value, replacing an older one.
func (s *Store) SetSetting(ctx context.Context, key, value string) error {
	row := settingRow{Name: text(key), Value: text(value)}
	return s.write(ctx, "set setting", func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "name"}},
			DoUpdates: clause.AssignmentColumns([]string{"value"})}).Create(&row).Error
	})
}
