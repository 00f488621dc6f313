package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"

	"agentrl/internal/errs"
	"agentrl/migrations"
)

// migrationLock is the advisory lock under which Postgres schemas are changed.
const migrationLock = 0x61676e74726c

// migrateUp applies what is missing. Each migration is a transaction. Starters that race are put in order by an
// advisory lock on Postgres; on SQLite, which has none, the loser's transaction fails as a whole and it looks again.
func migrateUp(ctx context.Context, dialect goose.Dialect, db *sql.DB) (err error) {
	dir := "sqlite"
	if dialect == goose.DialectPostgres {
		dir = "postgres"
		conn, err := db.Conn(ctx)
		if err != nil {
			return fail("migrate", err)
		}
		defer func() { err = errors.Join(err, conn.Close()) }()
		if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", int64(migrationLock)); err != nil {
			return fail("migrate", err)
		}
		defer func() {
			_, uerr := conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", int64(migrationLock))
			err = errors.Join(err, uerr)
		}()
	}
	sub, err := fs.Sub(migrations.FS, dir)
	if err != nil {
		return fail("migrate", err)
	}
	const tries = 20
	for i := range tries {
		err = migrateOnce(ctx, dialect, db, sub)
		var known *errs.Error
		if err == nil || errors.As(err, &known) || ctx.Err() != nil || dialect == goose.DialectPostgres {
			break
		}
		t := time.NewTimer(time.Duration(10*(i+1)) * time.Millisecond)
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		t.Stop()
	}
	return fail("migrate", err)
}

func migrateOnce(ctx context.Context, dialect goose.Dialect, db *sql.DB, files fs.FS) error {
	p, err := goose.NewProvider(dialect, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	current, target, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if current > target {
		return errs.New(errs.Unavailable, "the database has schema version %d, this program knows versions up to %d; "+
			"use the newer program that made it", current, target)
	}
	if current == target {
		return nil
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("from version %d to %d: %w", current, target, err)
	}
	return nil
}
