package auth

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"agentrl/internal/errs"
)

func TestCheckPassword(t *testing.T) {
	t.Parallel()
	common := commonWords()
	for _, ok := range []string{goodPassword, "xK9#mQ2vL7pR", strings.Repeat("long and longer ", 64), "пароль который никто не угадает", "corn flakes at midnight", "tr0ub4dor&3xyz"} {
		if err := checkPassword(ok, "ada@example.org", common); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{"", "elevenchars", strings.Repeat("x", MaxPassword+1), "aaaaaaaaaaaaaa", "ababababababab", "123456789012345", "987654321098765",
		"abcdefghijklmnop", "Password2024!", "password1234", "!!!Qwertyuiop123", "correcthorsebatterystaple", "ada@example.org", "ADA@example.org", "ada123456789", "welcome12345678",
		"1qaz2wsx3edc", "valid but \xff broken"} {
		err := checkPassword(bad, "ada@example.org", common)
		if errs.CodeOf(err) != errs.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
		if err != nil && len(bad) > 8 && strings.Contains(err.Error(), bad) && bad != "ada@example.org" {
			t.Errorf("the answer repeats the password: %v", err)
		}
	}
}

func TestLimiterIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	l := newLimiter(func() time.Time { return now })
	for range 30 {
		l.attempt("attacker", accountFree, accountMost)
		now = now.Add(accountMost)
	}
	for i := range 2 * limiterKeys {
		l.attempt(fmt.Sprint(i), accountFree, accountMost)
		now = now.Add(time.Millisecond)
	}
	if n := len(l.keys); n > limiterKeys {
		t.Errorf("%d keys", n)
	}
	if l.keys["attacker"] == nil {
		t.Error("the worst key was forgotten first")
	}
	now = now.Add(limiterReset + time.Second)
	l.prune()
	if len(l.keys) != 0 {
		t.Errorf("%d keys after an hour", len(l.keys))
	}
	l.takeBack("unknown")
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	zero, err := newToken(bytes.NewReader(make([]byte, 32)))
	if err != nil || zero != TokenPrefix+strings.Repeat("0", tokenChars)+checksum(strings.Repeat("0", tokenChars)) || !isToken(zero) {
		t.Errorf("token of zeros: %q, %v", zero, err)
	}
	most, err := newToken(bytes.NewReader(bytes.Repeat([]byte{255}, 32)))
	if err != nil || len(most) != len(zero) || !isToken(most) {
		t.Errorf("token of ones: %q, %v", most, err)
	}
	broken := []byte(most)
	broken[len(TokenPrefix)+3]++
	if isToken(string(broken)) {
		t.Error("a mistyped token has the right checksum")
	}
	if _, err := newToken(bytes.NewReader(nil)); err == nil {
		t.Error("a token without randomness")
	}
	if _, err := newSecret(bytes.NewReader(make([]byte, 31))); err == nil {
		t.Error("a secret with too little randomness")
	}
}

func FuzzIsToken(f *testing.F) {
	f.Add("agrl_" + strings.Repeat("0", 49))
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if isToken(s) && len(s) != len(TokenPrefix)+tokenChars+checkChars {
			t.Errorf("%q", s)
		}
		_ = isSecret(s)
	})
}

func FuzzCheckPassword(f *testing.F) {
	common := commonWords()
	f.Add(goodPassword, "a@b")
	f.Add("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "")
	f.Fuzz(func(t *testing.T, p, email string) {
		if err := checkPassword(p, email, common); err == nil && len(p) < MinPassword {
			t.Errorf("%q was taken", p)
		}
	})
}
