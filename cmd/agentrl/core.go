package main

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"agentrl/internal/config"
	"agentrl/internal/errs"
	"agentrl/internal/live"
	"agentrl/internal/redis"
	"agentrl/internal/store"
)

// core is the services that web server and workers stand on.
type core struct {
	cfg    config.Config
	log    *slog.Logger
	store  *store.Store
	redis  *redis.Client
	stream *live.Stream
}

// openStore makes the data directory and opens the database.
func openStore(ctx context.Context, cfg config.Config, log *slog.Logger) (*store.Store, error) {
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the data directory %s cannot be used", cfg.Data)
	}
	return store.Open(ctx, store.Options{URL: cfg.DatabaseURL.Reveal(), Dir: cfg.Data, Logger: log})
}

// openCore opens everything; the caller closes it.
func openCore(ctx context.Context, cfg config.Config, log *slog.Logger) (*core, error) {
	st, err := openStore(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	rc, err := redis.Open(ctx, cfg.RedisURL.Reveal(), log)
	if err != nil {
		return nil, errors.Join(err, st.Close())
	}
	s := live.NewStream(rc.Redis(), log)
	if err := s.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, errors.Join(err, rc.Close(), st.Close())
	}
	return &core{cfg: cfg, log: log, store: st, redis: rc, stream: s}, nil
}

// close ends the services in the order in which they need each other.
func (c *core) close() error {
	c.stream.Stop()
	return errors.Join(c.redis.Close(), c.store.Close())
}
