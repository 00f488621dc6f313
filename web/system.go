package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"agentrl/internal/errs"
)

// systemRoutes are what machines ask: health, metrics and static files.
func (s *Server) systemRoutes() []route {
	return []route{
		{Method: "GET", Path: "/healthz", Min: anyone, Kind: api, Handler: s.healthz},
		{Method: "GET", Path: "/readyz", Min: anyone, Kind: api, Handler: s.readyz},
		{Method: "GET", Path: "/metrics", Min: anyone, Kind: api, Handler: s.metricsText},
		{Method: "GET", Path: staticPrefix + "*", Min: anyone, Kind: page, Handler: s.staticFile},
	}
}

// healthz says that the process answers.
func (s *Server) healthz(r *request) error {
	return r.JSON(http.StatusOK, map[string]string{"status": "ok", "version": s.o.Version})
}

// readyz says whether the database answers too.
func (s *Server) readyz(r *request) error {
	ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
	defer cancel()
	if err := s.store.Ping(ctx); err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "not ready", slog.Any("err", err))
		return errs.Wrap(errs.Unavailable, err, "the database does not answer")
	}
	return r.JSON(http.StatusOK, map[string]string{"status": "ready"})
}

func (s *Server) metricsText(r *request) error {
	s.metrics.handler().ServeHTTP(r.c.Response(), r.c.Request())
	return nil
}

func (s *Server) staticFile(r *request) error {
	s.assets.ServeHTTP(r.c.Response(), r.c.Request())
	return nil
}
