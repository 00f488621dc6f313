package store_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentrl/internal/auth"
	"agentrl/internal/errs"
	"agentrl/internal/store"
)

// urls returns a fresh database of every dialect that can be tested here.
func urls(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{"sqlite": filepath.Join(t.TempDir(), "sub folder", "a#b?c%20.db")}
	if base := os.Getenv("AGENTRL_TEST_POSTGRES"); base != "" {
		out["postgres"] = freshSchema(t, base)
	}
	return out
}

// raw opens the database below a store.
func raw(t *testing.T, url string) *sql.DB {
	t.Helper()
	driver := "sqlite"
	if strings.HasPrefix(url, "postgres") {
		driver = "pgx"
	}
	db, err := sql.Open(driver, url)
	must(t, err)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

func TestConcurrentStarters(t *testing.T) {
	t.Parallel()
	for dialect, url := range urls(t) {
		t.Run(dialect, func(t *testing.T) {
			var wg sync.WaitGroup
			for range 6 {
				wg.Go(func() {
					s, err := store.Open(t.Context(), store.Options{URL: url})
					if err != nil {
						t.Error(err)
						return
					}
					if err := errors.Join(s.Ping(t.Context()), s.Close(), s.Close()); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		})
	}
}

func TestReopenKeepsData(t *testing.T) {
	t.Parallel()
	for dialect, url := range urls(t) {
		t.Run(dialect, func(t *testing.T) {
			s := got(store.Open(t.Context(), store.Options{URL: url}))(t)
			must(t, s.SetSetting(t.Context(), "k", "v"))
			if s.Dialect() != dialect {
				t.Errorf("dialect %s", s.Dialect())
			}
			must(t, s.Close())
			s = got(store.Open(t.Context(), store.Options{URL: url}))(t)
			defer s.Close()
			if v := got(s.Setting(t.Context(), "k"))(t); v != "v" {
				t.Fatalf("%q", v)
			}
		})
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	for dialect, url := range urls(t) {
		t.Run(dialect, func(t *testing.T) {
			must(t, got(store.Open(t.Context(), store.Options{URL: url}))(t).Close())
			path := url
			if dialect == "sqlite" {
				path = filepath.Join(t.TempDir(), "plain.db")
				must(t, os.Rename(url, path))
			}
			_, err := raw(t, path).ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, '1')")
			must(t, err)
			_, err = store.Open(t.Context(), store.Options{URL: path})
			wantCode(t, err, errs.Unavailable)
			if !strings.Contains(err.Error(), "version 999") {
				t.Fatalf("%v", err)
			}
		})
	}
}

func TestDefaultPath(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, got(store.Open(t.Context(), store.Options{Dir: dir}))(t).Close())
	if _, err := os.Stat(filepath.Join(dir, "agentrl.db")); err != nil {
		t.Fatal(err)
	}
}

func TestBadURLs(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, []byte("this is not a database, only a text of some length ......................."), 0o600))
	for _, c := range []struct {
		url  string
		code errs.Code
	}{
		{"mysql://root:secret@host/db", errs.Invalid},
		{"postgres://u:secret@127.0.0.1:1/db", errs.Unavailable},
		{file, errs.Unavailable},
		{filepath.Join(file, "below.db"), errs.Invalid},
	} {
		_, err := store.Open(t.Context(), store.Options{URL: c.url})
		wantCode(t, err, c.code)
		var known *errs.Error
		if errors.As(err, &known); strings.Contains(known.Message, "secret") {
			t.Errorf("the message tells the password: %s", known.Message)
		}
	}
}

func TestAuditIsAppendOnly(t *testing.T) {
	t.Parallel()
	for dialect, url := range map[string]string{"sqlite": filepath.Join(t.TempDir(), "a.db"), "postgres": urls(t)["postgres"]} {
		if url == "" {
			continue
		}
		t.Run(dialect, func(t *testing.T) {
			s := got(store.Open(t.Context(), store.Options{URL: url}))(t)
			defer s.Close()
			must(t, s.Audit(t.Context(), auth.AuditEntry{Action: "x"}))
			db := raw(t, url)
			for _, q := range []string{"UPDATE audit SET action = 'y'", "DELETE FROM audit"} {
				if _, err := db.ExecContext(t.Context(), q); err == nil || !strings.Contains(err.Error(), "append-only") {
					t.Errorf("%s: %v", q, err)
				}
			}
		})
	}
}

func TestClosedStore(t *testing.T) {
	t.Parallel()
	s := got(store.Open(context.Background(), store.Options{Dir: t.TempDir()}))(t)
	must(t, s.Close())
	_, err := s.CountUsers(t.Context())
	wantCode(t, err, errs.Internal)
	wantCode(t, s.SetSetting(t.Context(), "a", "b"), errs.Internal)
	if !strings.Contains(err.Error(), "count users") {
		t.Fatalf("%v", err)
	}
}
