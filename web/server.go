package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"agentrl/internal/errs"
	"agentrl/static"
)

const (
	staticPrefix = "/static/"
	livePath     = "/api/v1/live"
	setupPrefix  = "/setup/"
)

// Server answers HTTP. It is safe for concurrent use.
type Server struct {
	o       Options
	log     *slog.Logger
	clock   func() time.Time
	store   Store
	secure  bool // browsers reach us over https
	origin  string
	echo    *echo.Echo
	assets  *static.Assets
	metrics *serverMetrics
	cross   *http.CrossOriginProtection
	sockets *sockets
	table   []route
	http    *http.Server
	serving sync.WaitGroup
}

// New builds the server and its routes; it starts nothing.
func New(o Options) (*Server, error) {
	s := &Server{o: o, log: o.Logger, clock: o.Clock, store: o.Store, metrics: newMetrics(o.Version)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if o.Store == nil || o.Auth == nil || o.Hub == nil || o.Enqueuer == nil || o.BaseURL == nil {
		return nil, errors.New("web: Store, Auth, Hub, Enqueuer and BaseURL are needed")
	}
	s.secure = o.BaseURL.Scheme == "https"
	s.origin = o.BaseURL.Scheme + "://" + strings.ToLower(o.BaseURL.Host)
	s.cross = http.NewCrossOriginProtection()
	if err := s.cross.AddTrustedOrigin(s.origin); err != nil {
		return nil, err
	}
	var err error
	if s.assets, err = static.New(staticPrefix); err != nil {
		return nil, err
	}
	s.sockets = newSockets()
	o.Auth.OnEnd(func(int64, []byte) { s.sockets.recheck() })
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: 2 * time.Minute,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	s.echo = echo.New()
	s.echo.HideBanner, s.echo.HidePort = true, true
	s.echo.HTTPErrorHandler = s.handleError
	s.use()
	s.table = s.routes()
	for _, rt := range s.table {
		s.echo.Add(rt.Method, rt.Path, s.wrap(rt))
		if rt.Method == http.MethodGet && rt.Path != livePath {
			s.echo.Add(http.MethodHead, rt.Path, s.wrap(rt))
		}
	}
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// Start listens on Options.Addr and serves in the background until Shutdown; it returns the address in use.
func (s *Server) Start(ctx context.Context) (net.Addr, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.o.Addr)
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "cannot listen on %s", s.o.Addr)
	}
	s.serving.Add(1)
	go func() {
		defer s.serving.Done()
		if err := s.Serve(l); err != nil {
			s.log.LogAttrs(context.WithoutCancel(ctx), slog.LevelError, "serving ended", slog.Any("err", err))
		}
	}()
	return l.Addr(), nil
}

// Serve answers connections of l until Shutdown, which is no error.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Shutdown stops taking requests, ends live connections and waits for the rest until ctx ends. It may be called twice
// and before Start.
func (s *Server) Shutdown(ctx context.Context) error {
	s.sockets.closeAll()
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	s.serving.Wait()
	s.sockets.wait()
	return err
}

// handleError answers what no handler answered: unknown addresses, panics.
func (s *Server) handleError(err error, c echo.Context) {
	k := page
	if strings.HasPrefix(c.Request().URL.Path, "/api/") {
		k = api
	}
	s.fail(requestOf(c), k, err)
}

// render writes a component as HTML. templ.GetNonce returns the request's nonce inside it.
func (s *Server) render(r *request, status int, c templ.Component) error {
	h := r.c.Response().Header()
	h.Set("Cache-Control", "no-store")
	buf := templ.GetBuffer()
	defer templ.ReleaseBuffer(buf)
	if err := c.Render(templ.WithNonce(r.Context(), r.nonce), buf); err != nil {
		return err
	}
	return r.c.HTMLBlob(status, buf.Bytes())
}
