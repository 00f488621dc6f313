package store_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrl/internal/auth"
	"agentrl/internal/errs"
)

func userTests() []conformance {
	return []conformance{
		{"users", testUsers}, {"last admin", testLastAdmin}, {"last admin race", testLastAdminRace},
		{"sessions", testSessions}, {"tokens", testTokens}, {"audit", testAudit}, {"settings", testSettings},
	}
}

func testUsers(t *testing.T, f fixture) {
	ctx := t.Context()
	u := f.user(t, " Ada@Example.org ", auth.Researcher)
	if u.ID == 0 || u.Email != "ada@example.org" || !u.CreatedAt.Equal(start) {
		t.Fatalf("created %+v", u)
	}
	_, err := f.CreateUser(ctx, auth.User{Email: "ADA@example.org", Role: auth.Viewer})
	wantCode(t, err, errs.Conflict)
	if !strings.Contains(err.Error(), "ada@example.org is taken") {
		t.Fatalf("message %q", err)
	}
	_, err = f.CreateUser(ctx, auth.User{Email: "x@y", Role: "boss"})
	wantCode(t, err, errs.Invalid)
	if b := got(f.UserByEmail(ctx, "ADA@EXAMPLE.ORG"))(t); b.ID != u.ID {
		t.Fatalf("by email: %+v", b)
	}
	_, err = f.UserByID(ctx, 99)
	wantCode(t, err, errs.NotFound)
	u.Name, u.Prefs, u.LastSeenAt = "Ada \x00\xff", `{"dense":true}`, start.Add(time.Hour)
	must(t, f.UpdateUser(ctx, u))
	b := got(f.UserByID(ctx, u.ID))(t)
	if b.Name != "Ada \uFFFD\uFFFD" || b.Prefs != u.Prefs || !b.LastSeenAt.Equal(u.LastSeenAt) || !b.CreatedAt.Equal(start) {
		t.Fatalf("updated %+v", b)
	}
	other := f.user(t, "bob@example.org", auth.Viewer)
	other.Email = "ada@example.org"
	wantCode(t, f.UpdateUser(ctx, other), errs.Conflict)
	wantCode(t, f.UpdateUser(ctx, auth.User{ID: 99, Email: "q@q", Role: auth.Viewer}), errs.NotFound)
	if n := got(f.CountUsers(ctx))(t); n != 2 {
		t.Fatalf("%d users", n)
	}
	if l := got(f.ListUsers(ctx))(t); len(l) != 2 || l[0].ID != u.ID || l[1].Email != "bob@example.org" {
		t.Fatalf("list %+v", l)
	}
}

func testLastAdmin(t *testing.T, f fixture) {
	ctx := t.Context()
	a := f.user(t, "a@x", auth.Admin)
	for _, change := range []func(*auth.User){func(u *auth.User) { u.Role = auth.Viewer }, func(u *auth.User) { u.Disabled = true }} {
		u := a
		change(&u)
		wantCode(t, f.UpdateUser(ctx, u), errs.Conflict)
	}
	b := f.user(t, "b@x", auth.Admin)
	a.Disabled = true
	must(t, f.UpdateUser(ctx, a))
	b.Role = auth.Viewer
	wantCode(t, f.UpdateUser(ctx, b), errs.Conflict)
	if u := got(f.UserByID(ctx, b.ID))(t); u.Role != auth.Admin {
		t.Fatalf("role %s", u.Role)
	}
}

func testLastAdminRace(t *testing.T, f fixture) {
	ctx := t.Context()
	users := []auth.User{f.user(t, "a@x", auth.Admin), f.user(t, "b@x", auth.Admin), f.user(t, "c@x", auth.Admin)}
	var wg sync.WaitGroup
	out := make([]error, len(users))
	for i, u := range users {
		u.Role = auth.Viewer
		wg.Go(func() { out[i] = f.UpdateUser(ctx, u) })
	}
	wg.Wait()
	refused := 0
	for _, err := range out {
		if err != nil {
			wantCode(t, err, errs.Conflict)
			refused++
		}
	}
	if refused != 1 {
		t.Fatalf("%d of 3 refused: %v", refused, errors.Join(out...))
	}
}

func testSessions(t *testing.T, f fixture) {
	ctx := t.Context()
	u := f.user(t, "a@x", auth.Viewer)
	mk := func(h string, created, seen time.Duration) {
		must(t, f.CreateSession(ctx, auth.Session{Hash: []byte(h), UserID: u.ID, CreatedAt: start.Add(created), SeenAt: start.Add(seen), UserAgent: "ua", Addr: "127.0.0.1"}))
	}
	mk("one", 0, 0)
	mk("two", time.Hour, time.Hour)
	mk("three", 2*time.Hour, 2*time.Hour)
	wantCode(t, f.CreateSession(ctx, auth.Session{Hash: []byte("x"), UserID: 99}), errs.NotFound)
	s, su, err := f.SessionByHash(ctx, []byte("two"))
	if err != nil || su.ID != u.ID || s.UserAgent != "ua" || !s.CreatedAt.Equal(start.Add(time.Hour)) {
		t.Fatalf("%+v %+v %v", s, su, err)
	}
	must(t, f.TouchSession(ctx, []byte("one"), start.Add(5*time.Hour)))
	l := got(f.Sessions(ctx, u.ID))(t)
	if len(l) != 3 || string(l[0].Hash) != "one" || string(l[1].Hash) != "three" {
		t.Fatalf("sessions %+v", l)
	}
	wantCode(t, f.DeleteSession(ctx, u.ID+1, []byte("one")), errs.NotFound)
	n := got(f.DeleteSessionsBefore(ctx, start.Add(time.Minute), start.Add(90*time.Minute)))(t)
	if n != 2 {
		t.Fatalf("deleted %d", n)
	}
	must(t, f.DeleteSession(ctx, u.ID, []byte("three")))
	_, _, err = f.SessionByHash(ctx, []byte("three"))
	wantCode(t, err, errs.NotFound)
}

func testTokens(t *testing.T, f fixture) {
	ctx := t.Context()
	u := f.user(t, "a@x", auth.Researcher)
	tok := got(f.CreateToken(ctx, auth.Token{UserID: u.ID, Name: "ci", Prefix: "agt_ab", Hash: []byte("h1"), Role: auth.Viewer}))(t)
	_, err := f.CreateToken(ctx, auth.Token{UserID: u.ID, Name: "ci", Hash: []byte("h1"), Role: auth.Viewer})
	wantCode(t, err, errs.Conflict)
	must(t, f.TouchToken(ctx, tok.ID, start.Add(time.Minute)))
	wantCode(t, f.RevokeToken(ctx, u.ID+1, tok.ID, start), errs.NotFound)
	must(t, f.RevokeToken(ctx, u.ID, tok.ID, start.Add(time.Hour)))
	must(t, f.RevokeToken(ctx, u.ID, tok.ID, start.Add(2*time.Hour)))
	b, bu, err := f.TokenByHash(ctx, []byte("h1"))
	must(t, err)
	if bu.ID != u.ID || !b.LastUsedAt.Equal(start.Add(time.Minute)) || !b.RevokedAt.Equal(start.Add(time.Hour)) || !b.ExpiresAt.IsZero() {
		t.Fatalf("%+v", b)
	}
	if l := got(f.Tokens(ctx, u.ID))(t); len(l) != 1 || l[0].Name != "ci" {
		t.Fatalf("%+v", l)
	}
	_, _, err = f.TokenByHash(ctx, []byte("agt"))
	wantCode(t, err, errs.NotFound)
}

func testAudit(t *testing.T, f fixture) {
	ctx := t.Context()
	for _, a := range []string{"one", "two", "three"} {
		must(t, f.Audit(ctx, auth.AuditEntry{Action: a, Email: "a@x", Object: "run/1", Before: "x", After: "y"}))
	}
	l := got(f.AuditLog(ctx, 0, 2))(t)
	if len(l) != 2 || l[0].Action != "three" || l[1].Action != "two" || l[0].Before != "x" || !l[0].At.Equal(start) {
		t.Fatalf("%+v", l)
	}
	l = got(f.AuditLog(ctx, l[1].ID, 10))(t)
	if len(l) != 1 || l[0].Action != "one" {
		t.Fatalf("%+v", l)
	}
	_, err := f.AuditLog(ctx, 0, 201)
	wantCode(t, err, errs.Invalid)
}

func testSettings(t *testing.T, f fixture) {
	ctx := t.Context()
	_, err := f.Setting(ctx, "setup")
	wantCode(t, err, errs.NotFound)
	must(t, f.SetSetting(ctx, "setup", "1"))
	must(t, f.SetSetting(ctx, "setup", "2"))
	if v := got(f.Setting(ctx, "setup"))(t); v != "2" {
		t.Fatalf("%q", v)
	}
}
