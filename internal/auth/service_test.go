package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrl/internal/errs"
)

func TestSetupCreatesOneAdmin(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	n := NewUser{Email: " Ada@Example.org ", Name: "Ada", Password: goodPassword, Role: Viewer}
	if needs, err := k.NeedsSetup(ctx); err != nil || !needs {
		t.Fatalf("needs setup: %v, %v", needs, err)
	}
	wantCode(t, "no token yet", k.CheckSetup(ctx, ""), errs.Unauthorized)
	first, err := k.SetupToken(ctx)
	if err != nil {
		t.Fatal(err)
	}
	second, err := k.SetupToken(ctx)
	if err != nil || first == second || len(second) < 43 {
		t.Fatalf("tokens %q and %q, %v", first, second, err)
	}
	for _, v := range k.st.settings {
		if strings.Contains(v, second) {
			t.Error("the plain setup token is stored")
		}
	}
	_, _, err = k.CompleteSetup(ctx, first, n, from("a"))
	wantCode(t, "older token", err, errs.Unauthorized)
	weak := n
	weak.Password = "short"
	_, _, err = k.CompleteSetup(ctx, second, weak, from("a"))
	wantCode(t, "weak password", err, errs.Invalid)
	// Many at once: one wins.
	var wg sync.WaitGroup
	var mu sync.Mutex
	var ids []string
	for i := range 4 {
		wg.Go(func() {
			m := n
			m.Email = fmt.Sprintf("p%d@example.org", i)
			if id, u, err := k.CompleteSetup(ctx, second, m, from("b")); err == nil {
				mu.Lock()
				ids = append(ids, id)
				mu.Unlock()
				if u.Role != Admin {
					t.Errorf("role %s", u.Role)
				}
			} else if errs.CodeOf(err) != errs.Conflict {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(ids) != 1 || len(k.st.users) != 1 {
		t.Fatalf("%d accounts, %d sessions", len(k.st.users), len(ids))
	}
	if _, u, err := k.Authenticate(ctx, ids[0]); err != nil || u.Role != Admin {
		t.Errorf("the admin is not signed in: %v", err)
	}
	wantCode(t, "used token", k.CheckSetup(ctx, second), errs.Conflict)
	_, err = k.SetupToken(ctx)
	wantCode(t, "new token", err, errs.Conflict)
	if k.st.settings[setupKey] != "" {
		t.Error("the used token's hash is kept")
	}
}

func TestSetupGuessingIsLimited(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	if _, err := k.SetupToken(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	for range addressFree + 1 {
		_, _, err = k.CompleteSetup(t.Context(), "guess", NewUser{}, from("x"))
	}
	wantCode(t, "guess", err, errs.RateLimited)
}

func TestLogin(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	u := k.person(t, "ada@example.org", Researcher)
	off := k.person(t, "off@example.org", Viewer)
	if err := k.SetDisabled(t.Context(), User{}, off.ID, true, shell); err != nil {
		t.Fatal(err)
	}
	a, b := k.signIn(t, "ADA@example.org"), k.signIn(t, "ada@example.org")
	if a == b {
		t.Error("two sign-ins share a session id")
	}
	s, got, err := k.Authenticate(t.Context(), a)
	if err != nil || got.ID != u.ID || s.UserAgent != "test" || s.Addr != "10.0.0.1" {
		t.Errorf("%+v %+v %v", s, got, err)
	}
	if bytes.Contains(s.Hash, []byte(a)) || len(s.Hash) != 32 {
		t.Error("the session id itself is stored")
	}
	var answers []string
	for name, try := range map[string][2]string{
		"wrong password": {"ada@example.org", "wrong"},
		"unknown":        {"nobody@example.org", goodPassword},
		"disabled":       {"off@example.org", goodPassword},
		"no address":     {"ada", goodPassword},
		"empty":          {"", ""},
		"too long":       {"ada@example.org", strings.Repeat("x", MaxPassword+1)},
	} {
		_, _, err := k.Login(t.Context(), try[0], try[1], from("10.0.0.2"))
		wantCode(t, name, err, errs.Unauthorized)
		answers = append(answers, err.Error())
	}
	if slices.Sort(answers); len(slices.Compact(answers)) != 1 {
		t.Errorf("answers tell what was wrong: %v", answers)
	}
	for _, id := range []string{"", "x", a + "x", strings.Repeat("A", 43)} {
		_, _, err := k.Authenticate(t.Context(), id)
		wantCode(t, "session "+id, err, errs.Unauthorized)
	}
	acts := k.st.actions()
	for _, want := range []string{"login", "login.failed", "user.create", "user.disable"} {
		if !slices.Contains(acts, want) {
			t.Errorf("%s is not in the record %v", want, acts)
		}
	}
}

func TestLoginWaitsAfterFailures(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.person(t, "ada@example.org", Viewer)
	fail := func(addr string) error {
		_, _, err := k.Login(t.Context(), "ada@example.org", "wrong", from(addr))
		return err
	}
	for i := range accountFree {
		wantCode(t, "failure", fail(fmt.Sprint(i)), errs.Unauthorized)
	}
	err := fail("another")
	var retry *RetryError
	if !errors.As(err, &retry) || retry.After != time.Second || errs.CodeOf(err) != errs.RateLimited {
		t.Fatalf("failure %d: %v", accountFree+1, err)
	}
	_, _, err = k.Login(t.Context(), "ada@example.org", goodPassword, from("right"))
	wantCode(t, "right password while waiting", err, errs.RateLimited)
	k.advance(time.Second)
	wantCode(t, "after the wait", fail("x"), errs.Unauthorized)
	k.advance(time.Second)
	wantCode(t, "twice as long", fail("x"), errs.RateLimited)
	for range 10 { // the wait never gets longer than its bound
		k.advance(accountMost)
		wantCode(t, "after the longest wait", fail("y"), errs.Unauthorized)
	}
	k.advance(accountMost)
	k.signIn(t, "ada@example.org")
	wantCode(t, "after a success", fail("z"), errs.Unauthorized)
	wantCode(t, "after a success, again", fail("z"), errs.Unauthorized)
}

func TestAddressWaits(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.person(t, "ada@example.org", Viewer)
	for range 3 * addressFree { // successes do not add up
		k.signIn(t, "ada@example.org")
	}
	for i := range addressFree {
		_, _, err := k.Login(t.Context(), fmt.Sprintf("p%d@example.org", i), "wrong", from("10.0.0.9"))
		wantCode(t, "failure", err, errs.Unauthorized)
	}
	_, _, err := k.Login(t.Context(), "ada@example.org", goodPassword, from("10.0.0.9"))
	wantCode(t, "one address, many accounts", err, errs.RateLimited)
	k.signIn(t, "ada@example.org") // from elsewhere
}

func TestSessionLimits(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	u := k.person(t, "ada@example.org", Viewer)
	id := k.signIn(t, "ada@example.org")
	check := func(what string, ok bool) {
		t.Helper()
		if _, _, err := k.Authenticate(t.Context(), id); (err == nil) != ok {
			t.Errorf("%s: %v", what, err)
		}
	}
	k.advance(30 * time.Second)
	check("fresh", true)
	if k.st.touches != 0 {
		t.Error("every request writes")
	}
	for range int(SessionAge/(11*time.Hour)) - 1 {
		k.advance(11 * time.Hour)
		check("in use", true)
	}
	k.advance(11 * time.Hour)
	k.advance(11 * time.Hour)
	check("older than allowed in all or idle", false)
	id = k.signIn(t, "ada@example.org")
	k.advance(SessionIdle - time.Second)
	check("just before idle", true)
	k.advance(SessionIdle)
	check("idle", false)
	if list, err := k.Sessions(t.Context(), u.ID); err != nil || len(list) != 0 {
		t.Errorf("ended sessions are listed: %v, %v", list, err)
	}
	if err := k.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(k.st.sessions) > 1 {
		t.Errorf("%d sessions are left", len(k.st.sessions))
	}
}

func TestLogoutAndRevoke(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	root := k.person(t, "root@example.org", Admin)
	ada := k.person(t, "ada@example.org", Researcher)
	bob := k.person(t, "bob@example.org", Researcher)
	var ended []int64
	k.OnEnd(func(user int64, hash []byte) { ended = append(ended, user) })
	a, b, c := k.signIn(t, "ada@example.org"), k.signIn(t, "ada@example.org"), k.signIn(t, "ada@example.org")
	for range 2 {
		if err := k.Logout(ctx, a, from("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Logout(ctx, "nonsense", from("x")); err != nil {
		t.Fatal(err)
	}
	_, _, err := k.Authenticate(ctx, a)
	wantCode(t, "after logout", err, errs.Unauthorized)
	wantCode(t, "revoke another's", k.RevokeSession(ctx, bob, ada.ID, sum(b), from("x")), errs.Forbidden)
	wantCode(t, "revoke by nobody", k.RevokeSession(ctx, User{}, 0, sum(b), from("x")), errs.Forbidden)
	if err := k.RevokeSession(ctx, ada, ada.ID, sum(b), from("x")); err != nil {
		t.Fatal(err)
	}
	if err := k.RevokeSession(ctx, root, ada.ID, sum(c), from("x")); err != nil {
		t.Fatal(err)
	}
	if list, _ := k.Sessions(ctx, ada.ID); len(list) != 0 {
		t.Errorf("%d sessions are left", len(list))
	}
	if !slices.Equal(ended, []int64{ada.ID, ada.ID, ada.ID}) {
		t.Errorf("told of ended sessions of %v", ended)
	}
}

func TestAdministration(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	root := k.person(t, "root@example.org", Admin)
	ada := k.person(t, "ada@example.org", Researcher)
	locked := root
	locked.Disabled = true
	for name, actor := range map[string]User{"researcher": ada, "nobody": {}, "role without id": {Role: Admin}, "disabled admin": locked} {
		_, err := k.CreateUser(ctx, actor, NewUser{Email: "x@example.org", Password: goodPassword, Role: Viewer}, from("x"))
		wantCode(t, name+" creates", err, errs.Forbidden)
		wantCode(t, name+" sets a role", k.SetRole(ctx, actor, ada.ID, Admin, from("x")), errs.Forbidden)
		wantCode(t, name+" disables", k.SetDisabled(ctx, actor, root.ID, true, from("x")), errs.Forbidden)
		wantCode(t, name+" resets", k.ResetPassword(ctx, actor, root.ID, goodPassword+"!", from("x")), errs.Forbidden)
	}
	for name, n := range map[string]NewUser{
		"address":  {Email: "nobody", Password: goodPassword, Role: Viewer},
		"display":  {Email: "A <a@example.org>", Password: goodPassword, Role: Viewer},
		"role":     {Email: "x@example.org", Password: goodPassword, Role: "owner"},
		"password": {Email: "x@example.org", Password: "short", Role: Viewer},
		"name":     {Email: "x@example.org", Name: "a\nb", Password: goodPassword, Role: Viewer},
	} {
		_, err := k.CreateUser(ctx, root, n, from("x"))
		wantCode(t, name, err, errs.Invalid)
	}
	_, err := k.CreateUser(ctx, root, NewUser{Email: "ADA@example.org", Password: goodPassword, Role: Viewer}, from("x"))
	wantCode(t, "taken", err, errs.Conflict)
	wantCode(t, "unknown user", k.SetRole(ctx, root, 99, Viewer, from("x")), errs.NotFound)
	wantCode(t, "unknown role", k.SetRole(ctx, root, ada.ID, "owner", from("x")), errs.Invalid)

	id := k.signIn(t, "ada@example.org")
	if err := k.SetRole(ctx, root, ada.ID, Viewer, from("x")); err != nil {
		t.Fatal(err)
	}
	_, _, err = k.Authenticate(ctx, id)
	wantCode(t, "session from before the role changed", err, errs.Unauthorized)
	if err := k.SetDisabled(ctx, root, ada.ID, true, from("x")); err != nil {
		t.Fatal(err)
	}
	if err := k.SetDisabled(ctx, root, ada.ID, false, from("x")); err != nil {
		t.Fatal(err)
	}
	if err := k.ResetPassword(ctx, root, ada.ID, "another fine long phrase", from("x")); err != nil {
		t.Fatal(err)
	}
	if _, u, err := k.Login(ctx, "ada@example.org", "another fine long phrase", from("x")); err != nil || u.Role != Viewer {
		t.Errorf("%+v, %v", u, err)
	}
	last := k.st.audit[slices.IndexFunc(k.st.audit, func(e AuditEntry) bool { return e.Action == "user.role" })]
	if last.UserID != root.ID || last.Email != root.Email || last.Object != userObject(ada.ID) ||
		!strings.Contains(last.Before, `"role":"researcher"`) || !strings.Contains(last.After, `"role":"viewer"`) || last.At.IsZero() || last.Addr != "x" {
		t.Errorf("entry %+v", last)
	}
	all, _ := json.Marshal(k.st.audit)
	for _, secret := range []string{"argon2", goodPassword, "another fine"} {
		if strings.Contains(string(all), secret) {
			t.Errorf("the record holds %q", secret)
		}
	}
}

func TestChangePassword(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	u := k.person(t, "ada@example.org", Viewer)
	mine, other := k.signIn(t, "ada@example.org"), k.signIn(t, "ada@example.org")
	wantCode(t, "wrong old", k.ChangePassword(ctx, u, "wrong", "another fine long phrase", sum(mine), from("x")), errs.Unauthorized)
	wantCode(t, "weak new", k.ChangePassword(ctx, u, goodPassword, "short", sum(mine), from("x")), errs.Invalid)
	if err := k.ChangePassword(ctx, u, goodPassword, "another fine long phrase", sum(mine), from("x")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.Authenticate(ctx, mine); err != nil {
		t.Errorf("the own session ended: %v", err)
	}
	_, _, err := k.Authenticate(ctx, other)
	wantCode(t, "other session", err, errs.Unauthorized)
	for range accountFree {
		err = k.ChangePassword(ctx, u, "wrong", "another fine long phrase", nil, from("x"))
	}
	wantCode(t, "last free try", err, errs.Unauthorized)
	wantCode(t, "guessing", k.ChangePassword(ctx, u, "wrong", "another fine long phrase", nil, from("x")), errs.RateLimited)
}

func TestTokens(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	ctx := t.Context()
	root := k.person(t, "root@example.org", Admin)
	ada := k.person(t, "ada@example.org", Researcher)
	_, _, err := k.CreateToken(ctx, ada, "ci", Admin, 0, from("x"))
	wantCode(t, "above the own role", err, errs.Forbidden)
	_, _, err = k.CreateToken(ctx, ada, " ", Viewer, 0, from("x"))
	wantCode(t, "no name", err, errs.Invalid)
	_, _, err = k.CreateToken(ctx, ada, "ci", "owner", 0, from("x"))
	wantCode(t, "no such role", err, errs.Invalid)
	_, _, err = k.CreateToken(ctx, ada, "ci", Viewer, -time.Second, from("x"))
	wantCode(t, "in the past", err, errs.Invalid)

	plain, tok, err := k.CreateToken(ctx, ada, "ci", Annotator, time.Hour, from("x"))
	if err != nil || !strings.HasPrefix(plain, tok.Prefix) || !strings.HasPrefix(tok.Prefix, TokenPrefix) || len(tok.Prefix) != len(TokenPrefix)+6 {
		t.Fatalf("%q %+v %v", plain, tok, err)
	}
	if stored, _ := json.Marshal(k.st.tokens); strings.Contains(string(stored), plain[shownChars:]) {
		t.Error("the plain token is stored")
	}
	got, u, err := k.AuthenticateToken(ctx, plain)
	if err != nil || got.ID != tok.ID || u.ID != ada.ID || u.Role != Annotator || got.LastUsedAt.IsZero() {
		t.Errorf("%+v %+v %v", got, u, err)
	}
	if _, _, err := k.AuthenticateToken(ctx, plain); err != nil || k.st.touches != 1 {
		t.Errorf("%v, %d writes for two uses", err, k.st.touches)
	}
	if err := k.SetRole(ctx, root, ada.ID, Viewer, from("x")); err != nil {
		t.Fatal(err)
	}
	if _, u, err := k.AuthenticateToken(ctx, plain); err != nil || u.Role != Viewer {
		t.Errorf("the token kept the role %s: %v", u.Role, err)
	}
	for _, bad := range []string{"", "agrl_", plain + "0", plain[:len(plain)-1] + "_", strings.ToUpper(plain), strings.Replace(plain, "agrl", "argl", 1)} {
		_, _, err := k.AuthenticateToken(ctx, bad)
		wantCode(t, bad, err, errs.Unauthorized)
	}
	k.advance(time.Hour)
	_, _, err = k.AuthenticateToken(ctx, plain)
	wantCode(t, "expired", err, errs.Unauthorized)

	plain, tok, err = k.CreateToken(ctx, root, "forever", Admin, 0, from("x"))
	if err != nil || !tok.ExpiresAt.IsZero() {
		t.Fatal(err)
	}
	wantCode(t, "another's", k.RevokeToken(ctx, ada, root.ID, tok.ID, from("x")), errs.Forbidden)
	wantCode(t, "unknown", k.RevokeToken(ctx, root, root.ID, 99, from("x")), errs.NotFound)
	if err := k.RevokeToken(ctx, root, root.ID, tok.ID, from("x")); err != nil {
		t.Fatal(err)
	}
	_, _, err = k.AuthenticateToken(ctx, plain)
	wantCode(t, "revoked", err, errs.Unauthorized)
	if list, err := k.Tokens(ctx, root.ID); err != nil || len(list) != 1 {
		t.Errorf("%v %v", list, err)
	}
}

func TestHashIsRenewed(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.person(t, "ada@example.org", Viewer)
	old := k.st.users[0].PasswordHash
	k.signIn(t, "ada@example.org")
	if k.st.users[0].PasswordHash != old {
		t.Error("renewed without need")
	}
	k.hasher.params.Iterations++
	k.signIn(t, "ada@example.org")
	renewed := k.st.users[0].PasswordHash
	if renewed == old || !strings.Contains(renewed, "t=2") {
		t.Errorf("not renewed: %s", renewed)
	}
	k.signIn(t, "ada@example.org")
	if k.st.users[0].PasswordHash != renewed {
		t.Error("renewed twice")
	}
}

func TestDefaultHashParameters(t *testing.T) {
	t.Parallel()
	h, err := newHasher(nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, err := h.hash(t.Context(), goodPassword)
	if err != nil || !strings.HasPrefix(s, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("%s, %v", s, err)
	}
	if ok, stale, err := h.verify(t.Context(), goodPassword, s); !ok || stale || err != nil {
		t.Errorf("%v %v %v", ok, stale, err)
	}
	if ok, _, err := h.verify(t.Context(), "the password of nobody", ""); ok || err != nil {
		t.Errorf("an account without a password was entered: %v %v", ok, err)
	}
	if _, _, err := h.verify(t.Context(), "x", "not a hash"); err == nil {
		t.Error("a broken hash was taken")
	}
}

func TestHasherRefusesAFlood(t *testing.T) {
	t.Parallel()
	h, err := newHasher(cheap, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.waiting.Store(maxWaiting)
	_, err = h.hash(t.Context(), "x")
	wantCode(t, "flood", err, errs.RateLimited)
	h.waiting.Store(0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.hash(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("waited in vain: %v", err)
	}
	h.leave()
	if _, err := h.hash(t.Context(), "x"); err != nil {
		t.Error(err)
	}
}

func TestDatabaseErrorsPassThrough(t *testing.T) {
	t.Parallel()
	k := newKit(t)
	k.person(t, "ada@example.org", Viewer)
	id := k.signIn(t, "ada@example.org")
	k.st.down = errors.New("connection refused")
	_, _, err := k.Login(t.Context(), "ada@example.org", goodPassword, from("x"))
	wantCode(t, "login", err, errs.Internal)
	_, _, err = k.Authenticate(t.Context(), id)
	wantCode(t, "session", err, errs.Internal)
	wantCode(t, "setup", k.CheckSetup(t.Context(), "x"), errs.Internal)
	wantCode(t, "audit", k.Record(t.Context(), User{}, shell, "a", "b", nil, func() {}), errs.Internal)
}
