package web

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"agentrl/internal/errs"
	"agentrl/internal/live"
)

// socket is one connected tab. It is the hub's sink; the hub writes from one goroutine.
type socket struct {
	s      *Server
	conn   *websocket.Conn
	client *live.Client
	ctx    context.Context
	cancel context.CancelFunc
	check  func(context.Context) error
	verify chan struct{} // ask now, not at the next tick
	once   sync.Once

	topics map[string]bool // of the reader only
}

// Write implements live.Sink; one prepared message is shared by all tabs.
func (so *socket) Write(f *live.Frame) error {
	pm, ok := f.Shared(func(b []byte) any {
		m, err := websocket.NewPreparedMessage(websocket.TextMessage, b)
		if err != nil {
			return err
		}
		return m
	}).(*websocket.PreparedMessage)
	if !ok {
		return errs.New(errs.Internal, "a live message could not be prepared")
	}
	if f.Kind == live.Resync {
		so.s.metrics.resyncs.Inc()
	}
	_ = so.conn.SetWriteDeadline(time.Now().Add(writeWithin)) // the kernel's clock, not ours
	return so.conn.WritePreparedMessage(pm)
}

// Close implements live.Sink: it says why and ends the connection. The reader notices and cleans up.
func (so *socket) Close(reason string) {
	so.once.Do(func() {
		code := websocket.CloseNormalClosure
		if reason != "" {
			code = websocket.ClosePolicyViolation
		}
		_ = so.conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, clip(reason, 100)), time.Now().Add(time.Second))
		so.cancel()
		_ = so.conn.Close()
	})
}

// keep pings and asks again whether the credentials hold.
func (so *socket) keep() {
	ping, verify := time.NewTicker(pingEvery), time.NewTicker(verifyEvery)
	defer ping.Stop()
	defer verify.Stop()
	for {
		select {
		case <-so.ctx.Done():
			return
		case <-ping.C:
			if err := so.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeWithin)); err != nil {
				so.Close("")
				return
			}
			continue
		case <-verify.C:
		case <-so.verify:
		}
		if err := so.check(so.ctx); err != nil {
			switch errs.CodeOf(err) {
			case errs.Unauthorized, errs.Forbidden:
				so.Close("signed out")
				return
			}
		}
	}
}

// read obeys the page's orders until the connection ends.
func (so *socket) read() {
	so.conn.SetReadLimit(socketRead)
	alive := func(string) error { return so.conn.SetReadDeadline(time.Now().Add(pingEvery + pongWithin)) }
	_ = alive("")
	so.conn.SetPongHandler(alive)
	tokens, last := float64(subsPerSecond), so.s.clock()
	for {
		_, b, err := so.conn.ReadMessage()
		if err != nil {
			return
		}
		_ = alive("")
		var o order
		if err := decodeJSON(b, &o); err != nil {
			so.refuse("", err)
			continue
		}
		if o.Op == "sub" || o.Op == "unsub" {
			now := so.s.clock()
			tokens = min(subsPerSecond*2, tokens+now.Sub(last).Seconds()*subsPerSecond)
			last = now
			if tokens--; tokens < 0 {
				so.refuse(o.Topic, errs.New(errs.RateLimited, "too many subscriptions at once: at most %d a second", subsPerSecond))
				tokens = 0
				continue
			}
		}
		if err := so.obey(o); err != nil {
			so.refuse(o.Topic, err)
		}
	}
}

func (so *socket) obey(o order) error {
	switch o.Op {
	case "sub":
		if len(so.topics) >= maxTopics && !so.topics[o.Topic] {
			return errs.New(errs.Invalid, "at most %d topics may be open on one connection", maxTopics)
		}
		if err := so.s.allowed(so.ctx, o.Topic); err != nil {
			return err
		}
		cursor := live.FromNow
		if o.Cursor != nil {
			if *o.Cursor < 0 {
				return errs.Field("cursor", "must be a seq of at least 0, or left out to begin now")
			}
			cursor = *o.Cursor
		}
		so.topics[o.Topic] = true
		return so.client.Subscribe(so.ctx, o.Topic, cursor)
	case "unsub":
		delete(so.topics, o.Topic)
		so.client.Unsubscribe(o.Topic)
	case "pause": // the page subscribes again with its cursors when it goes on
		for t := range so.topics {
			so.client.Unsubscribe(t)
		}
		clear(so.topics)
	case "ping":
		so.send("", "pong", nil)
	default:
		return errs.Field("op", "%q is not known; allowed are sub, unsub, pause and ping", clip(o.Op, 40))
	}
	return nil
}

// refuse tells the page what was wrong with its order.
func (so *socket) refuse(topic string, err error) {
	e := showable(err)
	data, _ := json.Marshal(errorDetail{Code: e.Code, Message: e.Message, Field: e.Field})
	so.send(clip(topic, 120), live.Error, data)
}

func (so *socket) send(topic string, kind live.Kind, data json.RawMessage) {
	b, err := json.Marshal(live.Message{Topic: topic, Kind: kind, Data: data})
	if err != nil {
		return
	}
	so.client.Send(&live.Frame{Topic: topic, Kind: kind, Bytes: b})
}
