package auth

import (
	_ "embed"
	"strings"
	"unicode"
	"unicode/utf8"

	"agentrl/internal/errs"
)

// The lengths of a password. No rules of composition: length is what counts. The upper bound only keeps the hash cheap.
const (
	MinPassword = 12   // characters
	MaxPassword = 1024 // bytes
)

//go:embed common.txt
var commonText string

// commonWords returns the words that make a guessable password even with digits and signs around them.
func commonWords() map[string]bool {
	m := map[string]bool{}
	for w := range strings.Lines(commonText) {
		m[strings.TrimSpace(w)] = true
	}
	return m
}

// checkPassword returns an error that says what is wrong with a new password.
func checkPassword(p, email string, common map[string]bool) error {
	const field = "password"
	switch n := utf8.RuneCountInString(p); {
	case len(p) > MaxPassword:
		return errs.Field(field, "has %d bytes; at most %d are allowed", len(p), MaxPassword)
	case !utf8.ValidString(p):
		return errs.Field(field, "is not valid UTF-8 text")
	case n < MinPassword:
		return errs.Field(field, "has %d characters; at least %d are needed, 15 or more are better", n, MinPassword)
	}
	low := strings.ToLower(p)
	local, _, _ := strings.Cut(strings.ToLower(email), "@")
	core := strings.TrimFunc(low, func(r rune) bool { return !unicode.IsLetter(r) })
	switch {
	case low == strings.ToLower(email), local != "" && core == local:
		return errs.Field(field, "is the account's own name; choose another")
	case common[low], core != "" && common[core], common[strings.TrimRightFunc(low, notLetter)]:
		return errs.Field(field, "is one that attackers try first; choose another, such as four unrelated words")
	case monotonous(low):
		return errs.Field(field, "is a repetition or a row of keys; choose another")
	}
	return nil
}

func notLetter(r rune) bool { return !unicode.IsLetter(r) }

// monotonous reports whether p consists of fewer than four different characters or counts up or down all the way.
func monotonous(p string) bool {
	rs := []rune(p)
	kinds := map[rune]bool{}
	up, down := 0, 0
	for i, r := range rs {
		kinds[r] = true
		if i == 0 {
			continue
		}
		switch r - rs[i-1] {
		case 1, -9: // 9 is followed by 0
			up++
		case -1, 9:
			down++
		}
	}
	return len(kinds) < 4 || max(up, down) >= len(rs)-2
}
