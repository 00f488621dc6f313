package web

import (
	"fmt"

	"agentrl/internal/errs"
	"agentrl/internal/runfile"
)

// problemsError is a refused run file: the first problem as message, all of them for forms and API.
type problemsError struct {
	Problems []runfile.Problem
}

func (e *problemsError) Error() string { return e.Unwrap().Error() }

// Unwrap gives the part that may be shown.
func (e *problemsError) Unwrap() error {
	p := e.Problems[0]
	m := p.Message
	if p.Line > 0 {
		m = fmt.Sprintf("line %d: %s", p.Line, m)
	}
	if n := len(e.Problems); n > 1 {
		m = fmt.Sprintf("%s (and %d more)", m, n-1)
	}
	return errs.Field(p.Path, "%s", m)
}

// refused makes an error of problems; nil when there are none.
func refused(p []runfile.Problem) error {
	if len(p) == 0 {
		return nil
	}
	return &problemsError{p}
}
