package live

import (
	"context"
	"errors"
	"log/slog"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

var errTodo = errors.New("not built yet")

// FromNow as a cursor subscribes without replay. Any other cursor is a seq: what follows it is sent.
const FromNow int64 = -1

// Stream is the Publisher that writes to Redis. Start it before use, stop it after the last run.
type Stream struct{}

// NewStream does not start it.
func NewStream(rdb *goredis.Client, logger *slog.Logger) *Stream { return &Stream{} }

// Start begins to flush.
func (s *Stream) Start(ctx context.Context) error { return errTodo }

// Stop flushes what is pending.
func (s *Stream) Stop() {}

// Publish implements Publisher.
func (s *Stream) Publish(ctx context.Context, topic string, kind Kind, items ...any) error {
	return errTodo
}

// Frame is one serialised Message that all receivers share; nobody changes it.
type Frame struct {
	Topic string
	Seq   int64
	Kind  Kind
	Bytes []byte // JSON of the Message
}

// Shared builds a value from the frame once, for example a prepared websocket message, and returns the same to all.
func (f *Frame) Shared(build func(b []byte) any) any { return nil }

// Sink is one connected page. Write may block until its own deadline; an error detaches the client. Close is called
// once when the hub gives the client up.
type Sink interface {
	Write(f *Frame) error
	Close(reason string)
}

// Hub fans topics out to clients.
type Hub struct{}

// HubStats counts since start, except Clients, Topics and Subscriptions, which are now.
type HubStats struct {
	Clients, Topics, Subscriptions             int
	Frames, Sent, Resyncs, Dropped, SlowClosed int64
}

// NewHub does not start it.
func NewHub(rdb *goredis.Client, logger *slog.Logger) *Hub { return &Hub{} }

// Start begins to follow the topics.
func (h *Hub) Start(ctx context.Context) error { return errTodo }

// Stop closes all clients.
func (h *Hub) Stop() {}

// Attach adds a client.
func (h *Hub) Attach(s Sink) *Client { return nil }

// LastSeq returns the cursor to continue from. Read it before querying SQL.
func (h *Hub) LastSeq(ctx context.Context, topic string) (int64, error) { return 0, errTodo }

// Stats counts.
func (h *Hub) Stats() HubStats { return HubStats{} }

// Client is one attached sink.
type Client struct{}

// Subscribe sends what follows cursor, or one resync where that is not known any more.
func (c *Client) Subscribe(ctx context.Context, topic string, cursor int64) error { return errTodo }

// Unsubscribe ends a subscription.
func (c *Client) Unsubscribe(topic string) {}

// Send queues a frame that is not of a topic, such as an error or a pong.
func (c *Client) Send(f *Frame) {}

// Close detaches the client.
func (c *Client) Close() {}

// BenchResult is what BenchViewers measured.
type BenchResult struct {
	Viewers  int
	Messages int64
	P50, P95 time.Duration
	Dropped  int64
	Resyncs  int64
}

// BenchViewers measures the time from publish to receipt with n viewers of one busy run, for d.
func BenchViewers(ctx context.Context, n int, d time.Duration, logger *slog.Logger) (BenchResult, error) {
	return BenchResult{}, errTodo
}
