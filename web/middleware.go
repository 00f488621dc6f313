package web

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// Body limits in bytes. A run file with long notes stays far below the API's.
const (
	pageBody = 1 << 20
	apiBody  = 1 << 20
)

const requestKey = "agentrl.request"

// use installs what every answer passes through, outermost first.
func (s *Server) use() {
	s.echo.Use(s.begin, s.observe, s.recoverPanic, s.headers, middleware.GzipWithConfig(middleware.GzipConfig{
		MinLength: 1024,
		Skipper: func(c echo.Context) bool {
			p := c.Request().URL.Path
			// Static files bring their own compressed form; a websocket has no body to compress.
			return strings.HasPrefix(p, staticPrefix) || p == livePath || c.Request().Header.Get("Upgrade") != ""
		},
	}))
}

// begin gives the request its id and nonce. An id that a proxy sends is kept when it is harmless.
func (s *Server) begin(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := &request{s: s, c: c, id: requestID(c.Request().Header.Get(echo.HeaderXRequestID)), nonce: random(16)}
		c.Set(requestKey, r)
		c.Response().Header().Set(echo.HeaderXRequestID, r.id)
		return next(c)
	}
}

func requestOf(c echo.Context) *request {
	r, _ := c.Get(requestKey).(*request)
	return r
}

func requestID(given string) string {
	if len(given) == 0 || len(given) > 64 {
		return random(9)
	}
	for _, b := range []byte(given) {
		if b != '-' && b != '_' && (b < '0' || b > '9') && (b < 'A' || b > 'Z') && (b < 'a' || b > 'z') {
			return random(9)
		}
	}
	return given
}

// random is n bytes from the system's generator as URL-safe text; it never fails (crypto/rand aborts instead).
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// observe writes the access log and the request metrics. Paths are logged as routes plus path, never with the query,
// which may hold what a user typed.
func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := s.clock()
		err := next(c)
		if err != nil {
			c.Error(err)
		}
		took := s.clock().Sub(start)
		status := c.Response().Status
		path := c.Path()
		if path == "" {
			path = "unmatched"
		}
		s.metrics.request(c.Request().Method, path, status, took)
		level := slog.LevelInfo
		switch {
		case status >= 500:
			level = slog.LevelError
		case path == "/healthz", path == "/readyz", path == "/metrics", strings.HasPrefix(path, staticPrefix):
			level = slog.LevelDebug
		}
		r := requestOf(c)
		s.log.LogAttrs(c.Request().Context(), level, "request",
			slog.String("request", r.id), slog.String("method", c.Request().Method), slog.String("route", path),
			slog.String("path", logPath(c.Request().URL.Path)), slog.Int("status", status),
			slog.Int64("bytes", c.Response().Size), slog.Duration("took", took),
			slog.Int64("user", r.user.ID), slog.String("addr", addrOf(c.Request())))
		return nil
	}
}

// logPath hides the one-time setup link.
func logPath(p string) string {
	if strings.HasPrefix(p, setupPrefix) {
		return setupPrefix + "…"
	}
	return clip(p, 200)
}

// recoverPanic turns a panic into an internal error, so that one bad request never ends the program.
func (s *Server) recoverPanic(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler {
				panic(v)
			}
			s.log.LogAttrs(c.Request().Context(), slog.LevelError, "panic", slog.String("request", requestOf(c).id),
				slog.Any("value", v), slog.String("stack", string(debug.Stack())))
			err = fmt.Errorf("panic: %v", v)
		}()
		return next(c)
	}
}

// headers sets what dashboard.md 7 and 8 ask of every answer.
func (s *Server) headers(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", contentPolicy(requestOf(c).nonce))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=(), interest-cohort=()")
		if s.secure {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		return next(c)
	}
}

// contentPolicy is the content security policy of dashboard.md 7 for a nonce.
func contentPolicy(nonce string) string {
	return "default-src 'none'; script-src 'nonce-" + nonce + "' 'strict-dynamic'; style-src 'self' 'nonce-" + nonce +
		"'; connect-src 'self'; img-src 'self' data:; font-src 'self'; base-uri 'none'; object-src 'none'; " +
		"form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types htmx"
}
