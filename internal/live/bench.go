package live

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"agentrl/internal/redis"
)

// BenchResult is what BenchViewers measured. Latencies are from Publish to receipt, over every item at every viewer.
// Items counts receipts; Missing is what did not arrive, 0 when all is well.
type BenchResult struct {
	Viewers       int
	Published     int64
	Items         int64
	Missing       int64
	P50, P95, Max time.Duration
	Resyncs       int64
	Dropped       int64
	Closed        int64
}

// latencies is a histogram of milliseconds; the last bucket holds all that took longer.
type latencies [10_001]atomic.Int64

func (l *latencies) add(d time.Duration, n int64) {
	l[min(max(d.Milliseconds(), 0), int64(len(l)-1))].Add(n)
}

func (l *latencies) quantile(q float64) time.Duration {
	total, seen := int64(0), int64(0)
	for i := range l {
		total += l[i].Load()
	}
	for i := range l {
		seen += l[i].Load()
		if seen > 0 && float64(seen) >= q*float64(total) {
			return time.Duration(i) * time.Millisecond
		}
	}
	return 0
}

// viewer is a sink that only measures.
type viewer struct {
	lat   *latencies
	items *atomic.Int64
}

func (v viewer) Write(f *Frame) error {
	times, _ := f.Shared(func(b []byte) any {
		var m struct{ Data []MetricItem }
		if json.Unmarshal(b, &m) != nil {
			return []time.Time(nil)
		}
		out := make([]time.Time, len(m.Data))
		for i, d := range m.Data {
			out[i] = time.UnixMicro(int64(d.Time * 1e6))
		}
		return out
	}).([]time.Time)
	now := time.Now()
	for _, t := range times {
		v.lat.add(now.Sub(t), 1)
	}
	v.items.Add(int64(len(times)))
	return nil
}

func (viewer) Close(string) {}

// BenchViewers publishes the metrics of one busy run for d, 20 points every 50 ms, to n viewers through an embedded
// Redis of its own, and measures how long they take to arrive. Sockets are not part of it.
func BenchViewers(ctx context.Context, n int, d time.Duration, logger *slog.Logger) (BenchResult, error) {
	rc, err := redis.Open(ctx, "", logger)
	if err != nil {
		return BenchResult{}, err
	}
	defer func() { _ = rc.Close() }()
	stream, hub := NewStream(rc.Redis(), logger), NewHub(rc.Redis(), logger)
	if err := stream.Start(ctx); err != nil {
		return BenchResult{}, err
	}
	defer stream.Stop()
	if err := hub.Start(ctx); err != nil {
		return BenchResult{}, err
	}
	defer hub.Stop()
	var lat latencies
	var items atomic.Int64
	topic := MetricsTopic(1)
	var wg sync.WaitGroup
	errsc := make([]error, n)
	for i := range n {
		wg.Go(func() { errsc[i] = hub.Attach(viewer{&lat, &items}).Subscribe(ctx, topic, FromNow) })
	}
	wg.Wait()
	if i := slices.IndexFunc(errsc, func(e error) bool { return e != nil }); i >= 0 {
		return BenchResult{}, errsc[i]
	}
	res := BenchResult{Viewers: n}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return res, ctx.Err()
		case <-tick.C:
		}
		batch := make([]any, 20)
		for i := range batch {
			v := float64(i)
			batch[i] = MetricItem{Metric: "reward/mean", Attempt: 1, Step: res.Published, Time: float64(time.Now().UnixMicro()) / 1e6, Value: &v}
			res.Published++
		}
		if err := stream.Publish(ctx, topic, Delta, batch...); err != nil {
			return res, err
		}
	}
	want := res.Published * int64(n)
	for end := time.Now().Add(5 * time.Second); items.Load() < want && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return res, ctx.Err()
		case <-tick.C:
		}
	}
	st := hub.Stats()
	res.Items, res.Missing = items.Load(), want-items.Load()
	res.P50, res.P95, res.Max = lat.quantile(0.5), lat.quantile(0.95), lat.quantile(1)
	res.Resyncs, res.Dropped, res.Closed = st.Resyncs, st.Dropped+stream.Dropped(), st.SlowClosed
	return res, nil
}
