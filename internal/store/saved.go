package store

import (
	"context"
	"strings"

	"gorm.io/gorm"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

type savedRow struct {
	ID        int64 `gorm:"primaryKey"`
	Kind      string
	Name      string
	Version   int
	Body      string
	Note      string
	AuthorID  int64
	CreatedAt int64 `gorm:"autoCreateTime:false"`
}

func (savedRow) TableName() string { return "saved_objects" }

func (r savedRow) saved() experiment.Saved {
	return experiment.Saved{ID: r.ID, Kind: r.Kind, Name: r.Name, Version: r.Version, Body: r.Body, Note: r.Note,
		AuthorID: r.AuthorID, CreatedAt: fromMicros(r.CreatedAt)}
}

func savedList(rows []savedRow) []experiment.Saved {
	out := make([]experiment.Saved, len(rows))
	for i, r := range rows {
		out[i] = r.saved()
	}
	return out
}

// SaveObject stores the next version of (Kind, Name). Saves at the same time get versions of their own.
func (s *Store) SaveObject(ctx context.Context, v experiment.Saved) (experiment.Saved, error) {
	if v.Kind != "mix" && v.Kind != "pool" {
		return experiment.Saved{}, errs.Field("kind", "%q is not one of mix, pool", v.Kind)
	}
	row := savedRow{Kind: v.Kind, Name: strings.TrimSpace(text(v.Name)), Body: text(v.Body), Note: text(v.Note), AuthorID: v.AuthorID,
		CreatedAt: micros(s.clock())}
	if row.Name == "" {
		return experiment.Saved{}, errs.Field("name", "a name is needed")
	}
	err := s.write(ctx, "save object", func(tx *gorm.DB) error {
		if err := s.lockName(tx, "saved/"+row.Kind+"/"+row.Name); err != nil {
			return err
		}
		err := tx.Model(&savedRow{}).Where("kind = ? AND name = ?", row.Kind, row.Name).
			Select("COALESCE(MAX(version), 0) + 1").Scan(&row.Version).Error
		if err != nil {
			return err
		}
		return taken("save object", tx.Create(&row).Error, "version %d of %q exists", row.Version, row.Name)
	})
	return row.saved(), err
}

// Objects lists the latest version of each name of a kind, by name.
func (s *Store) Objects(ctx context.Context, kind string) ([]experiment.Saved, error) {
	var rows []savedRow
	err := s.read(ctx).Where("kind = ? AND version = (SELECT MAX(version) FROM saved_objects o WHERE o.kind = saved_objects.kind AND o.name = saved_objects.name)", kind).
		Order("name").Find(&rows).Error
	return savedList(rows), fail("objects", err)
}

// ObjectVersions lists all versions of a name, newest first. NotFound: no such name.
func (s *Store) ObjectVersions(ctx context.Context, kind, name string) ([]experiment.Saved, error) {
	var rows []savedRow
	if err := s.read(ctx).Where("kind = ? AND name = ?", kind, strings.TrimSpace(text(name))).Order("version DESC").Find(&rows).Error; err != nil {
		return nil, fail("object versions", err)
	}
	if len(rows) == 0 {
		return nil, errs.New(errs.NotFound, "there is no %s named %q", kind, name)
	}
	return savedList(rows), nil
}

// Object returns one version by id. NotFound.
func (s *Store) Object(ctx context.Context, id int64) (experiment.Saved, error) {
	var row savedRow
	err := s.read(ctx).Where("id = ?", id).Take(&row).Error
	return row.saved(), missing("object", err, "saved object %d", id)
}
