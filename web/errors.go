package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"agentrl/internal/errs"
	"agentrl/internal/runfile"
	"agentrl/templates"
)

// statusOf is the one mapping from error codes to HTTP.
func statusOf(c errs.Code) int {
	switch c {
	case errs.Invalid:
		return http.StatusBadRequest
	case errs.Unauthorized:
		return http.StatusUnauthorized
	case errs.Forbidden:
		return http.StatusForbidden
	case errs.NotFound:
		return http.StatusNotFound
	case errs.Conflict:
		return http.StatusConflict
	case errs.TooLarge:
		return http.StatusRequestEntityTooLarge
	case errs.RateLimited:
		return http.StatusTooManyRequests
	case errs.Unavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// safe finds the part of an error that may be shown.
func safe(err error) (*errs.Error, bool) {
	var e *errs.Error
	if errors.As(err, &e) {
		return e, true
	}
	return nil, false
}

// bodyError turns a failure to read a body into one that may be shown.
func bodyError(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return errs.New(errs.TooLarge, "the request is too large: at most %d bytes are accepted here", tooLarge.Limit)
	}
	return errs.Wrap(errs.Invalid, err, "the request body could not be read: it is cut short or not encoded as its content type says")
}

// showable maps any error to what the user is told. Internal texts stay in the log.
func showable(err error) *errs.Error {
	if e, ok := safe(err); ok {
		if e.Code != errs.Internal {
			return e
		}
		return errs.New(errs.Internal, "something went wrong on our side")
	}
	var he *echo.HTTPError
	if errors.As(err, &he) {
		switch he.Code {
		case http.StatusNotFound:
			return errs.New(errs.NotFound, "there is nothing at this address")
		case http.StatusMethodNotAllowed:
			return &errs.Error{Code: errs.Invalid, Message: "this address does not accept that method"}
		case http.StatusRequestEntityTooLarge:
			return errs.New(errs.TooLarge, "the request is too large")
		}
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errs.New(errs.Unavailable, "this took too long; try again")
	}
	return errs.New(errs.Internal, "something went wrong on our side")
}

// errorBody is the JSON form of every API error.
type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Code    errs.Code `json:"code"`
	Message string    `json:"message"`
	Field   string    `json:"field,omitempty"`
	// Problems are those of a refused run file.
	Problems []runfile.Problem `json:"problems,omitempty"`
}

// fail answers with an error: a JSON body for the API, a page otherwise.
func (s *Server) fail(r *request, k kind, err error) {
	if r.c.Response().Committed {
		s.log.LogAttrs(r.Context(), slog.LevelError, "failed after the answer had begun", slog.String("request", r.id), slog.Any("err", err))
		return
	}
	e := showable(err)
	status := statusOf(e.Code)
	var he *echo.HTTPError
	if errors.As(err, &he) && he.Code == http.StatusMethodNotAllowed {
		status = he.Code
	}
	if status >= 500 && !errors.Is(err, context.Canceled) {
		s.log.LogAttrs(r.Context(), slog.LevelError, "request failed", slog.String("request", r.id),
			slog.String("path", r.c.Request().URL.Path), slog.Any("err", err))
	}
	setRetryAfter(r.c.Response().Header(), err)
	if k == api {
		d := errorDetail{Code: e.Code, Message: e.Message, Field: e.Field}
		if p := (*problemsError)(nil); errors.As(err, &p) {
			d.Problems = p.Problems
		}
		_ = r.c.JSON(status, errorBody{d})
		return
	}
	title, action, href := errorWords(e.Code)
	what := e.Message
	if e.Field != "" {
		what = e.Field + ": " + what
	}
	_ = s.identify(r, page) // so that a signed-in user keeps the frame
	id := ""
	if status >= 500 {
		id = r.id
	}
	p := r.Page(title, "")
	p.Crumbs = []templates.Crumb{{Text: title}}
	_ = r.Render(status, templates.ErrorPage(p, title, what, action, href, id))
}

// errorWords names an error page and offers what to do now.
func errorWords(c errs.Code) (title, action, href string) {
	switch c {
	case errs.NotFound:
		return "Not found", "All runs", "/runs"
	case errs.Forbidden:
		return "Not allowed", "All runs", "/runs"
	case errs.Unauthorized:
		return "Not signed in", "Sign in", "/login"
	case errs.Conflict:
		return "Not possible now", "All runs", "/runs"
	case errs.TooLarge:
		return "Too large", "", ""
	case errs.RateLimited:
		return "Too many tries", "", ""
	case errs.Unavailable:
		return "Not available now", "All runs", "/runs"
	case errs.Invalid:
		return "Not understood", "All runs", "/runs"
	}
	return "Something went wrong", "All runs", "/runs"
}
