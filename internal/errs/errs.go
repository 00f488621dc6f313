// Package errs holds the one error type whose message is safe to show to a user.
//
// Everything that is not an *Error is internal: its text goes to the log, never to a page or the API.
package errs

import (
	"errors"
	"fmt"
)

// Code says what kind of failure an Error is; the web layer maps it to an HTTP status in one place.
type Code string

// The codes. Their names appear in the JSON API as error.code.
const (
	Invalid      Code = "invalid"      // 400: the input is wrong; Message says what and what is allowed
	Unauthorized Code = "unauthorized" // 401: no valid session or token
	Forbidden    Code = "forbidden"    // 403: the role does not allow it
	NotFound     Code = "not_found"    // 404
	Conflict     Code = "conflict"     // 409: the state does not allow it, or a unique name is taken
	TooLarge     Code = "too_large"    // 413
	RateLimited  Code = "rate_limited" // 429
	Unavailable  Code = "unavailable"  // 503: a service we need is gone
	Internal     Code = "internal"     // 500
)

// Error is a failure with a message that may be shown. Field names the input at fault, as a dotted path, or is empty.
type Error struct {
	Code    Code
	Message string
	Field   string
	Err     error // cause, for the log only; may be nil
}

func (e *Error) Error() string {
	s := e.Message
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// New formats an Error of the given code.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Field formats an Invalid error that names the input at fault.
func Field(field, format string, args ...any) *Error {
	return &Error{Code: Invalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Wrap adds a safe message and a code to a cause.
func Wrap(code Code, err error, format string, args ...any) *Error {
	return &Error{Code: code, Err: err, Message: fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of the first *Error in err's chain, or Internal.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return Internal
}
