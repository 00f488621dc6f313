// Package redis opens the one Redis that the queue and the live updates share: an external server named by a URL, or
// one that lives inside this process.
package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	goredis "github.com/redis/go-redis/v9"

	"agentrl/internal/errs"
)

// tick is how often the embedded server's clock is moved on. It never expires a key by itself.
const tick = 500 * time.Millisecond

// Client is a connection pool to one Redis. It is safe for concurrent use.
type Client struct {
	opt     *goredis.Options
	rdb     *goredis.Client
	mini    *miniredis.Miniredis // nil for an external server
	stop    chan struct{}
	stopped chan struct{}
	once    sync.Once
	err     error
}

// Open connects to the Redis at url (redis://, rediss:// or unix://), or starts an embedded one when url is empty. The
// server must answer a ping before ctx ends. The caller closes the client after everything that uses it has stopped.
func Open(ctx context.Context, url string, logger *slog.Logger) (*Client, error) {
	if url == "" {
		return openEmbedded(ctx, logger)
	}
	opt, err := goredis.ParseURL(url)
	if err != nil {
		// The cause repeats the URL, which may hold a password.
		return nil, errs.Field("redis-url", "is not a Redis address; allowed are redis://user:password@host:port/db, rediss:// for TLS and unix:///path")
	}
	c := &Client{opt: opt, rdb: goredis.NewClient(opt)}
	if err := c.Ping(ctx); err != nil {
		_ = c.rdb.Close()
		return nil, err
	}
	logger.Info("connected to Redis", slog.String("addr", opt.Addr), slog.Int("db", opt.DB))
	return c, nil
}

func openEmbedded(ctx context.Context, logger *slog.Logger) (*Client, error) {
	mini := miniredis.NewMiniRedis()
	// Other users of the machine can reach the loopback port, so it asks for a password that only this process knows.
	password := rand.Text()
	mini.RequireAuth(password)
	if err := mini.StartAddr("127.0.0.1:0"); err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "the embedded Redis could not listen on the loopback address")
	}
	c := &Client{mini: mini, stop: make(chan struct{}), stopped: make(chan struct{})}
	c.opt = &goredis.Options{Addr: mini.Addr(), Password: password, Protocol: 2, DisableIdentity: true}
	c.rdb = goredis.NewClient(c.opt)
	go c.runClock()
	if err := c.Ping(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	logger.Debug("started the embedded Redis", slog.String("addr", mini.Addr()))
	return c, nil
}

// runClock moves the embedded server's clock on by the time that really passed, so that locks and rings expire.
func (c *Client) runClock() {
	defer close(c.stopped)
	t := time.NewTicker(tick)
	defer t.Stop()
	last := time.Now()
	for {
		select {
		case <-c.stop:
			return
		case now := <-t.C:
			if d := now.Sub(last); d > 0 {
				c.mini.FastForward(d)
				last = now
			}
		}
	}
}

// Redis returns the shared go-redis client. Callers do not close it.
func (c *Client) Redis() *goredis.Client { return c.rdb }

// Asynq returns how asynq connects to the same server on connections of its own.
func (c *Client) Asynq() asynq.RedisConnOpt {
	o := c.opt
	return asynq.RedisClientOpt{
		Network: o.Network, Addr: o.Addr, Username: o.Username, Password: o.Password, DB: o.DB,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
		PoolSize: o.PoolSize, TLSConfig: o.TLSConfig,
	}
}

// Embedded reports whether the server lives in this process and so is empty after every start.
func (c *Client) Embedded() bool { return c.mini != nil }

// Addr is the server's address without credentials.
func (c *Client) Addr() string { return c.opt.Addr }

// Ping asks the server for a sign of life. Unavailable: it gave none.
func (c *Client) Ping(ctx context.Context) error {
	if err := c.rdb.Ping(ctx).Err(); err != nil {
		return errs.Wrap(errs.Unavailable, err, "Redis at %s does not answer", c.opt.Addr)
	}
	return nil
}

// Close ends all connections and the embedded server. It may be called more than once.
func (c *Client) Close() error {
	c.once.Do(func() {
		if err := c.rdb.Close(); err != nil && !errors.Is(err, goredis.ErrClosed) {
			c.err = err
		}
		if c.mini != nil {
			close(c.stop)
			<-c.stopped
			c.mini.Close()
		}
	})
	return c.err
}
