package live

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"agentrl/internal/errs"
)

func TestPendingJoins(t *testing.T) {
	t.Parallel()
	var p pending
	for _, o := range []op{
		{Delta, []byte("1"), 1}, {Delta, []byte("2,3"), 2}, {State, []byte("4"), 1}, {State, []byte("5"), 1}, {Delta, []byte("6"), 1},
		{Error, []byte(`"a"`), 1}, {Error, []byte(`"b"`), 1}, {End, nil, 0},
	} {
		p.add(o)
	}
	var got []string
	for _, o := range p.ops {
		got = append(got, string(o.kind)+":"+string(o.data))
	}
	want := []string{"delta:1,2,3", "state:5", "delta:6", `error:"a"`, `error:"b"`, "end:"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	if lost := p.overflow(); lost != 7 || len(p.ops) != 2 || p.ops[0].kind != Resync || p.ops[1].kind != End || p.bytes != 0 {
		t.Errorf("overflow lost %d and left %v", lost, p.ops)
	}
}

func TestPublishRefuses(t *testing.T) {
	t.Parallel()
	s := NewStream(nil, quiet)
	for name, err := range map[string]error{
		"no topic":        s.Publish(t.Context(), "", Delta, 1),
		"long topic":      s.Publish(t.Context(), strings.Repeat("x", maxTopic+1), Delta, 1),
		"empty delta":     s.Publish(t.Context(), "x", Delta),
		"two states":      s.Publish(t.Context(), "x", State, 1, 2),
		"two ends":        s.Publish(t.Context(), "x", End, 1, 2),
		"unknown kind":    s.Publish(t.Context(), "x", Kind("push"), 1),
		"not JSON":        s.Publish(t.Context(), "x", Delta, math.NaN()),
		"second not JSON": s.Publish(t.Context(), "x", Delta, 1, math.Inf(1)),
	} {
		if errs.CodeOf(err) != errs.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(s.topics) != 0 {
		t.Error("something refused was kept")
	}
}

func TestPublishIsBounded(t *testing.T) {
	t.Parallel()
	s := NewStream(nil, quiet) // never flushed
	text := strings.Repeat("x", 1<<20)
	for i := range 100 {
		if err := s.Publish(t.Context(), "t"+strconv.Itoa(i%20), Delta, text); err != nil {
			t.Fatal(err)
		}
	}
	if s.bytes > totalBytes {
		t.Errorf("%d bytes wait", s.bytes)
	}
	sum := 0
	for _, p := range s.topics {
		sum += p.bytes
	}
	if sum != s.bytes {
		t.Errorf("bytes counted %d, are %d", s.bytes, sum)
	}
	if s.Dropped() == 0 {
		t.Error("nothing counted as dropped")
	}
	if err := s.Publish(t.Context(), "t0", End); err != nil {
		t.Fatal(err)
	}
	ops := s.topics["t0"].ops
	if ops[0].kind != Resync || ops[len(ops)-1].kind != End {
		t.Errorf("kinds of an overflown topic: %v", ops)
	}
	for len(s.topics) > 0 {
		s.take()
	}
	if s.bytes != 0 || len(s.order) != 0 {
		t.Errorf("after taking all: %d bytes, %d topics", s.bytes, len(s.order))
	}
}

func TestJoin(t *testing.T) {
	t.Parallel()
	list := []entry{{1, Delta, "[1]"}, {2, Delta, "[]"}, {3, Delta, "[2,3]"}, {4, State, "7"}, {5, State, "8"}, {6, End, ""}, {7, End, ""}}
	var got []string
	for rest := list; len(rest) > 0; {
		n := prefix(rest)
		got = append(got, string(join(`a"b`, rest[:n]).Bytes))
		rest = rest[n:]
	}
	want := []string{
		`{"topic":"a\"b","seq":3,"kind":"delta","data":[1,2,3]}`,
		`{"topic":"a\"b","seq":5,"kind":"state","data":8}`,
		`{"topic":"a\"b","seq":6,"kind":"end"}`,
		`{"topic":"a\"b","seq":7,"kind":"end"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	big := entry{1, Delta, "[" + strings.Repeat("1,", frameBytes/3) + "1]"}
	if n := prefix([]entry{big, big, big}); n != 1 {
		t.Errorf("%d big entries in one frame", n)
	}
}

func TestFrameIsBuiltOnce(t *testing.T) {
	t.Parallel()
	f := NewFrame(Message{Topic: "x", Seq: 3, Kind: State, Data: json.RawMessage(`{"a":1}`)})
	var m Message
	if err := json.Unmarshal(f.Bytes, &m); err != nil || !reflect.DeepEqual(m, Message{"x", 3, State, json.RawMessage(`{"a":1}`)}) {
		t.Errorf("%+v, %v", m, err)
	}
	n := 0
	for range 3 {
		if f.Shared(func(b []byte) any { n++; return string(b) }) != string(f.Bytes) {
			t.Error("another value")
		}
	}
	if n != 1 {
		t.Errorf("built %d times", n)
	}
}

func TestComplete(t *testing.T) {
	t.Parallel()
	const epoch, base = 1000, 5_000_000
	h := head{last: base + 3, base: base}
	list := func(from int64) (out []entry) {
		for s := from; s <= h.last; s++ {
			out = append(out, entry{seq: s})
		}
		return out
	}
	short := endTTL.Milliseconds()
	for _, tc := range []struct {
		name   string
		cursor int64
		now    int64
		h      head
		list   []entry
		want   bool
	}{
		{"newest", base + 3, base, h, nil, true},
		{"next one is there", base + 1, base, h, list(base + 2), true},
		{"next one is trimmed", base + 1, base, h, list(base + 3), false},
		{"just before the ring", base - 10, base, h, list(base + 1), true},
		{"just before a trimmed ring", base - 10, base, h, list(base + 2), false},
		{"long before the ring", base - short - 1, base, h, list(base + 1), false},
		{"from the beginning", 0, base, h, list(base + 1), true},
		{"from a trimmed beginning", 0, base, h, list(base + 2), false},
		{"from the beginning of nothing", 0, base, head{}, nil, true},
		{"before the epoch", 999, base, h, list(base + 1), false},
		{"later than the newest", base + 4, base, h, nil, false},
		{"ring lost", base + 1, base, h, nil, false},
		{"no topic, fresh cursor", base, base + short, head{}, nil, true},
		{"no topic, old cursor", base, base + short + 1, head{}, nil, false},
	} {
		if got := complete(tc.cursor, epoch, tc.now, tc.h, tc.list); got != tc.want {
			t.Errorf("%s: %v", tc.name, got)
		}
	}
}

func FuzzParseHead(f *testing.F) {
	for _, s := range []string{"3:1", "", ":", "a:b", "9223372036854775808:1", "-1:-2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if h := parseHead(s); h != (head{}) {
			if parseHead(strconv.FormatInt(h.last, 10)+":"+strconv.FormatInt(h.base, 10)) != h {
				t.Errorf("%q gives %+v", s, h)
			}
		}
	})
}
