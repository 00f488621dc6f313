package store

import (
	"context"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver "pgx"
	"github.com/libtnb/sqlite"
	"github.com/pressly/goose/v3"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"agentrl/internal/errs"
)

func gormConfig() *gorm.Config {
	return &gorm.Config{SkipDefaultTransaction: true, TranslateError: true, Logger: logger.Discard, DisableAutomaticPing: true}
}

// openSQLite opens the writer pool of one connection and the pool of readers.
func (s *Store) openSQLite(ctx context.Context, path string) error {
	if strings.Contains(path, "://") {
		return errs.Field("database-url", "%q is not understood; allowed are postgres://... or the path of a SQLite file", redact(path))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return errs.Wrap(errs.Invalid, err, "the folder %s cannot be made", filepath.Dir(path))
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return fail("open", err)
	}
	// busy_timeout comes first so that the switch to WAL already waits for other starters.
	q := "?_busy_timeout=5000&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=foreign_keys(1)&_pragma=temp_store(2)"
	file := (&url.URL{Scheme: "file", Path: abs}).String() + q
	w, err := sql.Open(sqlite.DriverName, file+"&_txlock=immediate")
	if err != nil {
		return fail("open", err)
	}
	s.pools = append(s.pools, w)
	w.SetMaxOpenConns(1)
	w.SetConnMaxIdleTime(0)
	if err := w.PingContext(ctx); err != nil {
		return errs.Wrap(errs.Unavailable, err, "the database file %s cannot be opened", path)
	}
	if err := migrateUp(ctx, goose.DialectSQLite3, w); err != nil {
		return err
	}
	r, err := sql.Open(sqlite.DriverName, file+"&_pragma=query_only(1)")
	if err != nil {
		return fail("open", err)
	}
	s.pools = append(s.pools, r)
	n := max(4, 2*runtime.GOMAXPROCS(0))
	r.SetMaxOpenConns(n)
	r.SetMaxIdleConns(n)
	if s.w, err = gorm.Open(sqlite.New(sqlite.Config{Conn: w}), gormConfig()); err != nil {
		return fail("open", err)
	}
	s.r, err = gorm.Open(sqlite.New(sqlite.Config{Conn: r}), gormConfig())
	return fail("open", err)
}

// openPostgres opens one pool for both directions.
func (s *Store) openPostgres(ctx context.Context, dsn string) error {
	p, err := sql.Open("pgx", dsn)
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "the database URL is not understood")
	}
	s.pools = append(s.pools, p)
	n := max(8, 4*runtime.GOMAXPROCS(0))
	p.SetMaxOpenConns(n)
	p.SetMaxIdleConns(n)
	p.SetConnMaxLifetime(time.Hour)
	if err := p.PingContext(ctx); err != nil {
		return errs.Wrap(errs.Unavailable, err, "the Postgres server at %s does not answer", redact(dsn))
	}
	if err := migrateUp(ctx, goose.DialectPostgres, p); err != nil {
		return err
	}
	s.w, err = gorm.Open(postgres.New(postgres.Config{Conn: p}), gormConfig())
	s.r = s.w
	return fail("open", err)
}

// redact returns the host and database of a URL, without user, password and parameters.
func redact(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return "the given URL"
	}
	return u.Host + u.Path
}
