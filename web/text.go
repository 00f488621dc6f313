package web

import (
	"strings"
	"unicode/utf8"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

// checkName accepts a one-line name of 1 to most characters.
func checkName(field, v string, most int) error {
	if strings.TrimSpace(v) == "" {
		return errs.Field(field, "is missing; give it 1 to %d characters", most)
	}
	if v != strings.TrimSpace(v) {
		return errs.Field(field, "must not begin or end with white space")
	}
	for _, c := range v {
		if experiment.Unprintable(c) {
			return errs.Field(field, "must be one line without control characters or marks that change the direction of text")
		}
	}
	return checkText(field, v, most)
}

// checkText accepts valid UTF-8 of at most so many characters.
func checkText(field, v string, most int) error {
	if !utf8.ValidString(v) {
		return errs.Field(field, "is not valid UTF-8")
	}
	if n := utf8.RuneCountInString(v); n > most {
		return errs.Field(field, "has %d characters; at most %d are allowed", n, most)
	}
	return nil
}
