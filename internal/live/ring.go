package live

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// Every topic has two keys: a head, "LAST:BASE", and a ring, a stream whose entry ids are SEQ-0. LAST is the newest seq
// and BASE the one before the first of this ring. A topic that nobody writes to for a while expires as a whole.
//
// A new topic does not start at 1 but at the server's clock in milliseconds. So seqs keep increasing when a topic
// expires and comes back, and when an embedded server starts empty: an old cursor never names a newer message. No
// topic is written a thousand times a second, so a seq never runs ahead of the clock.
const (
	epochKey = "agentrl:live:epoch" // clock when this server's memory began; cursors from before are worth nothing
	ringCap  = 10_000               // entries kept of a topic
	ringTTL  = 10 * time.Minute     // of a topic that still goes on
	endTTL   = time.Minute          // of a topic that has ended, and of single trajectories, of which there are many
)

// ttl is how long a topic is kept after a message of kind.
func ttl(topic string, kind Kind) time.Duration {
	if kind == End || strings.HasPrefix(topic, TrajectoryTopic("")) {
		return endTTL
	}
	return ringTTL
}

func headKey(topic string) string { return "agentrl:live:head:" + topic }
func ringKey(topic string) string { return "agentrl:live:ring:" + topic }

// appendScript appends a batch of messages to their topics, once.
//
// KEYS: the epoch key, the publisher's key, then head and ring of each topic.
// ARGV: the batch number, then for each topic: the most entries to keep, the time to live in milliseconds, the number of
// messages n, and n times kind and data.
// Returns the number of messages appended; 0 when this publisher's batch is already there, so that a retry after a
// lost reply doubles nothing.
var appendScript = goredis.NewScript(`
local clock = redis.call('TIME')
local now = string.format('%.0f', tonumber(clock[1]) * 1000 + math.floor(tonumber(clock[2]) / 1000))
redis.call('SET', KEYS[1], now, 'NX')
local done = redis.call('GET', KEYS[2])
if done and tonumber(done) >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[2], ARGV[1], 'PX', 3600000)
local a, added = 2, 0
for k = 3, #KEYS, 2 do
  local keep, ttl, n = ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 2])
  a = a + 3
  local last, base = now, now
  local head = redis.call('GET', KEYS[k])
  if head then last, base = string.match(head, '^(%d+):(%d+)$') end
  local seq = tonumber(last)
  for i = 1, n do
    seq = seq + 1
    redis.call('XADD', KEYS[k + 1], 'MAXLEN', keep, string.format('%.0f-0', seq), 'k', ARGV[a], 'd', ARGV[a + 1])
    a = a + 2
    added = added + 1
  end
  redis.call('SET', KEYS[k], string.format('%.0f:%s', seq, base), 'PX', ttl)
  redis.call('PEXPIRE', KEYS[k + 1], ttl)
end
return added
`)

// entry is one message of a ring.
type entry struct {
	seq  int64
	kind Kind
	data string // JSON; a delta's is an array
}

// head is where a topic stands. The zero head is a topic that does not exist.
type head struct{ last, base int64 }

func parseHead(v any) head {
	s, ok := v.(string)
	if !ok {
		return head{}
	}
	l, b, _ := strings.Cut(s, ":")
	last, err1 := strconv.ParseInt(l, 10, 64)
	base, err2 := strconv.ParseInt(b, 10, 64)
	if err1 != nil || err2 != nil {
		return head{}
	}
	return head{last, base}
}

// ring reads topics.
type ring struct{ rdb *goredis.Client }

// heads returns the epoch and the heads of topics, in order.
func (r ring) heads(ctx context.Context, topics []string) (epoch int64, hs []head, err error) {
	keys := make([]string, 1, len(topics)+1)
	keys[0] = epochKey
	for _, t := range topics {
		keys = append(keys, headKey(t))
	}
	vals, err := r.rdb.MGet(ctx, keys...).Result()
	if err != nil {
		return 0, nil, fmt.Errorf("read live heads: %w", err)
	}
	if s, ok := vals[0].(string); ok {
		epoch, _ = strconv.ParseInt(s, 10, 64)
	}
	hs = make([]head, len(topics))
	for i, v := range vals[1:] {
		hs[i] = parseHead(v)
	}
	return epoch, hs, nil
}

// after returns what each topic holds after its seq, at most count entries each.
func (r ring) after(ctx context.Context, topics []string, seqs []int64, count int64) ([][]entry, error) {
	cmds := make([]*goredis.XMessageSliceCmd, len(topics))
	_, err := r.rdb.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, t := range topics {
			cmds[i] = p.XRangeN(ctx, ringKey(t), streamID(seqs[i]+1), "+", count)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read live rings: %w", err)
	}
	out := make([][]entry, len(topics))
	for i, c := range cmds {
		out[i] = entries(c.Val())
	}
	return out, nil
}

// position is what a subscriber with a cursor has to be sent.
type position struct {
	last    int64   // seq to go on from; the server's clock for a topic that does not exist
	ok      bool    // false: something after the cursor is lost
	entries []entry // all after the cursor, when ok
}

// resume looks up what follows cursor, at one instant of the server.
func (r ring) resume(ctx context.Context, topic string, cursor int64) (position, error) {
	var clock *goredis.TimeCmd
	var epochCmd, headCmd *goredis.StringCmd
	var rangeCmd *goredis.XMessageSliceCmd
	if err := r.begin(ctx); err != nil {
		return position{}, err
	}
	_, err := r.rdb.TxPipelined(ctx, func(p goredis.Pipeliner) error {
		clock = p.Time(ctx)
		epochCmd = p.Get(ctx, epochKey)
		headCmd = p.Get(ctx, headKey(topic))
		if cursor >= 0 {
			rangeCmd = p.XRange(ctx, ringKey(topic), streamID(cursor+1), "+")
		}
		return nil
	})
	if err != nil && err != goredis.Nil {
		return position{}, fmt.Errorf("resume live topic: %w", err)
	}
	now := clock.Val().UnixMilli()
	epoch, _ := strconv.ParseInt(epochCmd.Val(), 10, 64)
	h := parseHead(headCmd.Val())
	pos := position{last: h.last}
	if h.last == 0 {
		pos.last = now
	}
	if rangeCmd == nil {
		pos.ok = true
		return pos, nil
	}
	pos.entries = entries(rangeCmd.Val())
	pos.ok = complete(cursor, epoch, now, h, pos.entries)
	if !pos.ok {
		pos.entries = nil
	}
	return pos, nil
}

// complete reports whether list is everything that was ever published after cursor.
func complete(cursor, epoch, now int64, h head, list []entry) bool {
	short := endTTL.Milliseconds()
	switch {
	case cursor == 0: // a page that knows nothing yet takes the topic from its beginning
		return h.last == 0 || len(list) > 0 && list[0].seq == h.base+1
	case cursor < epoch || epoch == 0: // from before this server's memory began
		return false
	case h.last == 0: // nothing there: true if nothing can have come and gone since
		return cursor >= now-short
	case cursor > h.last:
		return false
	case cursor == h.last:
		return true
	case len(list) == 0:
		return false
	case cursor >= h.base:
		return list[0].seq == cursor+1
	}
	// The cursor is from before this ring. An earlier ring of the topic can hide between only if it had time to expire.
	return list[0].seq == h.base+1 && cursor >= h.base-short
}

// begin marks when the server's memory began, if nobody has yet.
func (r ring) begin(ctx context.Context) error {
	n, err := r.rdb.Exists(ctx, epochKey).Result()
	if err != nil {
		return fmt.Errorf("read live epoch: %w", err)
	}
	if n == 1 {
		return nil
	}
	t, err := r.rdb.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("read the clock of Redis: %w", err)
	}
	if err := r.rdb.SetNX(ctx, epochKey, t.UnixMilli(), 0).Err(); err != nil {
		return fmt.Errorf("write live epoch: %w", err)
	}
	return nil
}

func streamID(seq int64) string { return strconv.FormatInt(seq, 10) + "-0" }

func entries(ms []goredis.XMessage) []entry {
	out := make([]entry, 0, len(ms))
	for _, m := range ms {
		id, _, _ := strings.Cut(m.ID, "-")
		seq, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			continue
		}
		k, _ := m.Values["k"].(string)
		d, _ := m.Values["d"].(string)
		out = append(out, entry{seq, Kind(k), d})
	}
	return out
}
