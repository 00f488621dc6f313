package store

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
	"gorm.io/gorm"
)

// Options says where the data is. An empty URL means SQLite in Dir/agentrl.db; a URL that begins with postgres:// or
// postgresql:// means Postgres; anything else is the path of a SQLite file. Logger and Clock may be nil.
type Options struct {
	URL    string
	Dir    string
	Logger *slog.Logger
	Clock  func() time.Time
}

// Store implements API over SQLite or Postgres. It is safe for concurrent use.
//
// On SQLite all writes go through a pool of one connection whose transactions begin immediate, and reads through a
// pool of their own, so that neither waits for the other. On Postgres both are one pool, and rows are locked where two
// writers could meet.
type Store struct {
	log   *slog.Logger
	clock func() time.Time
	pg    bool
	w, r  *gorm.DB
	pools []*sql.DB
	enc   *zstd.Encoder
	dec   *zstd.Decoder
}

var _ API = (*Store)(nil)

// Open connects, brings the schema up to date and returns the store. It is safe to open one database from several
// processes at once. A schema that a newer program has made is refused with Unavailable. The caller closes the store.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{log: o.Logger, clock: o.Clock}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	var err error
	if s.enc, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(4)); err != nil {
		return nil, fail("open", err)
	}
	if s.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxPayload)); err != nil {
		return nil, fail("open", err)
	}
	if isPostgres(o.URL) {
		s.pg = true
		err = s.openPostgres(ctx, o.URL)
	} else {
		path := o.URL
		if path == "" {
			path = filepath.Join(o.Dir, "agentrl.db")
		}
		err = s.openSQLite(ctx, path)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.log.InfoContext(ctx, "database open", slog.String("dialect", s.Dialect()))
	return s, nil
}

func isPostgres(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

// Ping asks both pools for an answer.
func (s *Store) Ping(ctx context.Context) error {
	for _, p := range s.pools {
		if err := p.PingContext(ctx); err != nil {
			return fail("ping", err)
		}
	}
	return nil
}

// Close waits for running statements and closes all connections. It may be called twice.
func (s *Store) Close() error {
	var all error
	for _, p := range s.pools {
		all = errors.Join(all, p.Close())
	}
	if s.dec != nil {
		s.dec.Close()
	}
	return all
}

// Dialect returns "sqlite" or "postgres", for status pages.
func (s *Store) Dialect() string {
	if s.pg {
		return "postgres"
	}
	return "sqlite"
}

// read returns the handle for queries.
func (s *Store) read(ctx context.Context) *gorm.DB { return s.r.WithContext(ctx) }

// write runs fn in one transaction; nothing of it stays when fn fails. Only the transaction that it hands out may be
// used inside, because SQLite has a single writer.
func (s *Store) write(ctx context.Context, op string, fn func(tx *gorm.DB) error) error {
	return fail(op, s.w.WithContext(ctx).Transaction(fn))
}
