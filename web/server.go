package web

import (
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"
)

// Server answers HTTP. It is safe for concurrent use.
type Server struct {
	o      Options
	log    *slog.Logger
	clock  func() time.Time
	store  Store
	secure bool // browsers reach us over https
	echo   *echo.Echo
	assets *assets
}

// New builds the server and its routes; it starts nothing.
func New(o Options) (*Server, error) {
	s := &Server{o: o, log: o.Logger, clock: o.Clock, store: o.Store}
	if s.log == nil {
		s.log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	s.secure = o.BaseURL != nil && o.BaseURL.Scheme == "https"
	var err error
	if s.assets, err = newAssets(o.Static); err != nil {
		return nil, err
	}
	s.echo = echo.New()
	s.echo.HideBanner, s.echo.HidePort = true, true
	return s, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.echo.ServeHTTP(w, r) }

// render writes a component as HTML. templ.GetNonce returns the request's nonce inside it.
func (s *Server) render(r *request, status int, c templ.Component) error {
	h := r.c.Response().Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	buf := templ.GetBuffer()
	defer templ.ReleaseBuffer(buf)
	if err := c.Render(templ.WithNonce(r.Context(), r.nonce), buf); err != nil {
		return err
	}
	return r.c.HTMLBlob(status, buf.Bytes())
}
