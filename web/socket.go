package web

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/gorilla/websocket"

	"agentrl/internal/auth"
	"agentrl/internal/errs"
	"agentrl/internal/live"
)

// The times and sizes of dashboard.md 6.
const (
	pingEvery     = 20 * time.Second
	pongWithin    = 30 * time.Second
	writeWithin   = 10 * time.Second
	verifyEvery   = 15 * time.Second
	socketRead    = 64 << 10
	maxTopics     = 64
	subsPerSecond = 20
)

// order is what a page sends.
type order struct {
	Op     string          `json:"op"` // sub | unsub | ping | pause
	Topic  string          `json:"topic"`
	Cursor *int64          `json:"cursor"` // seq to continue after; absent: from now
	Params json.RawMessage `json:"params"` // reserved; ignored
}

// liveSocket upgrades to the one websocket of a tab.
func (s *Server) liveSocket(r *request) error {
	if !websocket.IsWebSocketUpgrade(r.c.Request()) {
		return errs.New(errs.Invalid, "this address speaks websocket only; send the Upgrade header")
	}
	if !r.token && !s.sameOrigin(r.c.Request()) {
		return errs.New(errs.Forbidden, "live updates must be opened from %s; the Origin was %q", s.origin, clip(r.c.Request().Header.Get("Origin"), 80))
	}
	up := websocket.Upgrader{
		HandshakeTimeout: writeWithin, ReadBufferSize: 2048, WriteBufferSize: 4096,
		CheckOrigin: func(*http.Request) bool { return true }, // checked above
		Error:       func(http.ResponseWriter, *http.Request, int, error) {},
	}
	conn, err := up.Upgrade(r.c.Response(), r.c.Request(), nil)
	if err != nil {
		return errs.Wrap(errs.Invalid, err, "the websocket handshake is not valid")
	}
	r.c.Response().Committed, r.c.Response().Status = true, http.StatusSwitchingProtocols
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	so := &socket{s: s, conn: conn, ctx: ctx, cancel: cancel, verify: make(chan struct{}, 1), check: s.recheck(r), topics: map[string]bool{}}
	if !s.sockets.add(so) {
		so.Close("the server is stopping")
		return nil
	}
	defer s.sockets.remove(so)
	s.metrics.sockets.Inc()
	defer s.metrics.sockets.Dec()
	so.client = s.o.Hub.Attach(so)
	kept := make(chan struct{})
	go func() { defer close(kept); so.keep() }()
	so.read()
	so.client.Close()
	so.Close("")
	<-kept
	return nil
}

// recheck returns a function that asks whether the credentials of r still hold.
func (s *Server) recheck(r *request) func(context.Context) error {
	holds := func(now auth.Role, err error) error {
		if err == nil && !now.Allows(viewer) {
			return errs.New(errs.Forbidden, "the role %q does not allow live updates", now)
		}
		return err
	}
	if r.token {
		_, plain, _ := strings.Cut(r.c.Request().Header.Get("Authorization"), " ")
		plain = strings.TrimSpace(plain)
		return func(ctx context.Context) error {
			_, u, err := s.o.Auth.AuthenticateToken(ctx, plain)
			return holds(u.Role, err)
		}
	}
	id := r.sessionID()
	return func(ctx context.Context) error {
		_, u, err := s.o.Auth.Authenticate(ctx, id)
		return holds(u.Role, err)
	}
}

// sameOrigin accepts the base URL's origin and, where that is loopback, the loopback name that the browser used.
func (s *Server) sameOrigin(q *http.Request) bool {
	o := strings.ToLower(q.Header.Get("Origin"))
	if o == s.origin {
		return true
	}
	u, err := url.Parse(o)
	return err == nil && u.Scheme == s.o.BaseURL.Scheme && strings.EqualFold(u.Host, q.Host) &&
		loopback(u.Hostname()) && loopback(s.o.BaseURL.Hostname())
}

func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// allowed checks a topic's form and that what it is about exists. Every signed-in role may read.
func (s *Server) allowed(ctx context.Context, topic string) error {
	switch topic {
	case live.QueueTopic, live.WorkersTopic, live.RunsTopic:
		return nil
	}
	kind, rest, _ := strings.Cut(topic, "/")
	var run string
	switch kind {
	case "run":
		id, of, ok := strings.Cut(rest, "/")
		switch of {
		case "metrics", "events", "rollouts", "groups", "status":
		default:
			ok = false
		}
		if !ok {
			return errs.Field("topic", "%q is not known; topics of a run are metrics, events, rollouts, groups and status", clip(topic, 80))
		}
		run = id
	case "trajectory":
		run, _, _ = strings.Cut(rest, "-") // ids begin with the run's
	default:
		return errs.Field("topic", "%q is not known; allowed are run/<id>/…, trajectory/<id>, queue, workers and runs", clip(topic, 80))
	}
	id, err := parseID(run)
	if err != nil || len(topic) > 120 {
		return errs.Field("topic", "%q names no run", clip(topic, 80))
	}
	if _, err := s.store.Run(ctx, id); err != nil {
		if errs.CodeOf(err) == errs.NotFound {
			return errs.New(errs.NotFound, "there is no run %d", id)
		}
		s.log.LogAttrs(ctx, slog.LevelError, "checking a topic", slog.Any("err", err))
		return errs.New(errs.Unavailable, "the run could not be looked up; subscribe again")
	}
	return nil
}
