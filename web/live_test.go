package web

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"agentrl/internal/auth"
	"agentrl/internal/live"
)

// tab is one open live connection.
type tab struct {
	t    testing.TB
	conn *websocket.Conn
}

func (w *world) dial(h http.Header) (*websocket.Conn, *http.Response, error) {
	return websocket.DefaultDialer.DialContext(w.t.Context(), "ws"+strings.TrimPrefix(w.http.URL, "http")+livePath, h)
}

// open connects with a session's cookie from the server's own origin.
func (w *world) open(ck *http.Cookie) *tab {
	w.t.Helper()
	conn, res, err := w.dial(http.Header{"Origin": {w.http.URL}, "Cookie": {ck.String()}})
	check(w.t, err)
	check(w.t, res.Body.Close())
	w.t.Cleanup(func() { _ = conn.Close() })
	return &tab{w.t, conn}
}

func (b *tab) send(text string) {
	b.t.Helper()
	check(b.t, b.conn.WriteMessage(websocket.TextMessage, []byte(text)))
}

// next waits for a message of the kind; others are passed over. The deadline only keeps a broken test from hanging.
func (b *tab) next(kind live.Kind) live.Message {
	b.t.Helper()
	_ = b.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		_, raw, err := b.conn.ReadMessage()
		check(b.t, err)
		var m live.Message
		check(b.t, json.Unmarshal(raw, &m))
		if m.Kind == kind {
			return m
		}
	}
}

func TestLiveHandshake(t *testing.T) {
	t.Parallel()
	w := populated(t)
	ck := w.session(auth.Viewer).String()
	for _, c := range []struct {
		name   string
		header http.Header
		status int
	}{
		{"stranger", http.Header{"Origin": {w.http.URL}}, 401},
		{"no origin", http.Header{"Cookie": {ck}}, 403},
		{"foreign origin", http.Header{"Cookie": {ck}, "Origin": {"https://evil.example"}}, 403},
		{"other port", http.Header{"Cookie": {ck}, "Origin": {"http://127.0.0.1:1"}}, 403},
		{"bad token", http.Header{"Authorization": {"Bearer x"}}, 401},
		{"own page", http.Header{"Cookie": {ck}, "Origin": {w.http.URL}}, 101},
		{"token without origin", http.Header{"Authorization": {"Bearer " + w.tokens[auth.Viewer]}}, 101},
	} {
		conn, res, err := w.dial(c.header)
		if conn != nil {
			_ = conn.Close()
		}
		if res == nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if res.StatusCode != c.status {
			t.Errorf("%s: status %d, want %d", c.name, res.StatusCode, c.status)
		}
	}
	w.do(call{method: "GET", path: livePath, role: auth.Viewer}).want(t, 400, "speaks websocket only")
}

// TestLive subscribes, receives what is published, resumes from a cursor, and is told what is wrong with its orders.
func TestLive(t *testing.T) {
	t.Parallel()
	w := populated(t)
	run := w.run("e", "r")
	topic := live.MetricsTopic(run.ID)
	b := w.open(w.session(auth.Viewer))
	b.send(`{"op":"ping"}`)
	b.next("pong")
	b.send(`{"op":"sub","topic":"` + topic + `","cursor":0}`)
	v := 0.5
	check(t, w.stream.Publish(t.Context(), topic, live.Delta, live.MetricItem{Metric: "reward/mean", Attempt: 1, Step: 1, Value: &v}))
	first := b.next(live.Delta)
	if first.Topic != topic || first.Seq < 1 || !strings.Contains(string(first.Data), `"v":0.5`) {
		t.Errorf("got %+v %s", first, first.Data)
	}
	b.send(`{"op":"pause"}`)
	b.send(`{"op":"ping"}`)
	b.next("pong")
	check(t, w.stream.Publish(t.Context(), topic, live.Delta, live.MetricItem{Metric: "reward/mean", Attempt: 1, Step: 2, Value: &v}))
	b.send(`{"op":"sub","topic":"` + topic + `","cursor":` + jsonText(first.Seq) + `}`)
	if second := b.next(live.Delta); second.Seq != first.Seq+1 || !strings.Contains(string(second.Data), `"s":2`) {
		t.Errorf("after the pause came %+v %s", second, second.Data)
	}
	for _, c := range []struct{ order, want string }{
		{`{"op":"dance"}`, "allowed are sub, unsub, pause and ping"},
		{`{"op":"sub","topic":"run/99/metrics"}`, "there is no run 99"},
		{`{"op":"sub","topic":"run/x/metrics"}`, "names no run"},
		{`{"op":"sub","topic":"run/1/secrets"}`, "topics of a run are metrics"},
		{`{"op":"sub","topic":"trajectory/nope"}`, "names no run"},
		{`{"op":"sub","topic":"users"}`, "allowed are run/"},
		{`{"op":"sub","topic":"queue","cursor":-5}`, "at least 0"},
		{`{"op":"sub","topic":7}`, "must be a string"},
		{`{"op":"sub","colour":"red"}`, "unknown field"},
		{`not json`, "not valid JSON"},
	} {
		b.send(c.order)
		if m := b.next(live.Error); !strings.Contains(string(m.Data), c.want) {
			t.Errorf("%s: answered %s, want %q", c.order, m.Data, c.want)
		}
	}
	b.send(`{"op":"sub","topic":"trajectory/1-1-0-0"}`)
	for range 3 * subsPerSecond {
		b.send(`{"op":"unsub","topic":"queue"}`)
	}
	if m := b.next(live.Error); !strings.Contains(string(m.Data), string("rate_limited")) {
		t.Errorf("a flood of orders was answered %s", m.Data)
	}
	w.srv.metrics.handler() // the gauge is registered
	if got := w.do(call{method: "GET", path: "/metrics"}); !strings.Contains(got.text, "agentrl_live_connections 1") {
		t.Error("the open connection is not counted")
	}
}

// TestPagesTellOpenTabs holds that creating and stopping a run reaches subscribed lists.
func TestPagesTellOpenTabs(t *testing.T) {
	t.Parallel()
	w := populated(t)
	run := w.run("e", "r")
	b := w.open(w.session(auth.Viewer))
	b.send(`{"op":"sub","topic":"runs"}`)
	b.send(`{"op":"ping"}`)
	b.next("pong")
	w.do(call{method: "POST", path: "/api/v1/runs/" + jsonText(run.ID) + "/stop", role: auth.Researcher}).want(t, 200)
	if m := b.next(live.Delta); !strings.Contains(string(m.Data), `"state":"stopped"`) {
		t.Errorf("got %s", m.Data)
	}
}

// closed waits until the server ends the connection and returns why.
func (b *tab) closed() string {
	b.t.Helper()
	_ = b.conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		if _, _, err := b.conn.ReadMessage(); err != nil {
			return err.Error()
		}
	}
}

// TestLiveEndsWithItsCredentials revokes a session, a role, a token and an account under open connections.
func TestLiveEndsWithItsCredentials(t *testing.T) {
	t.Parallel()
	w := populated(t)
	for name, end := range map[string]func(ck *http.Cookie){
		"logout": func(ck *http.Cookie) { w.do(call{method: "POST", path: "/logout", cookie: ck}).want(t, 303) },
		"lock out": func(*http.Cookie) {
			w.do(call{method: "PATCH", path: "/api/v1/users/" + idOf(w.users[auth.Viewer]), role: auth.Admin, body: `{"disabled":true}`}).want(t, 200)
			w.do(call{method: "PATCH", path: "/api/v1/users/" + idOf(w.users[auth.Viewer]), role: auth.Admin, body: `{"disabled":false}`}).want(t, 200)
		},
	} {
		ck := w.session(auth.Viewer)
		b := w.open(ck)
		b.send(`{"op":"ping"}`)
		b.next("pong")
		end(ck)
		if why := b.closed(); !strings.Contains(why, "signed out") {
			t.Errorf("%s: the connection ended with %q", name, why)
		}
	}
	conn, res, err := w.dial(http.Header{"Authorization": {"Bearer " + w.tokens[auth.Annotator]}})
	check(t, err)
	check(t, res.Body.Close())
	w.do(call{method: "DELETE", path: "/api/v1/tokens/3", role: auth.Annotator}).want(t, 204)
	if why := (&tab{t, conn}).closed(); !strings.Contains(why, "signed out") {
		t.Errorf("token: the connection ended with %q", why)
	}
	_ = conn.Close()
}

// TestShutdownEndsLive holds that a stopping server ends its connections and takes no new ones.
func TestShutdownEndsLive(t *testing.T) {
	t.Parallel()
	w := populated(t)
	b := w.open(w.session(auth.Viewer))
	b.send(`{"op":"ping"}`)
	b.next("pong")
	check(t, w.srv.Shutdown(t.Context()))
	check(t, w.srv.Shutdown(t.Context()))
	if why := b.closed(); !strings.Contains(why, "stopping") {
		t.Errorf("ended with %q", why)
	}
}

// TestOversizedOrder holds the read limit.
func TestOversizedOrder(t *testing.T) {
	t.Parallel()
	w := populated(t)
	b := w.open(w.session(auth.Viewer))
	b.send(`{"op":"sub","topic":"` + strings.Repeat("a", socketRead) + `"}`)
	if why := b.closed(); why == "" {
		t.Error("the connection stayed open")
	}
}
