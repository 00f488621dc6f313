package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"agentrl/internal/env/alfworld"
	"agentrl/internal/live"
	"agentrl/internal/metric"
	nnbench "agentrl/internal/nn/bench"
	"agentrl/internal/store"
	"agentrl/internal/train"
)

// benchmarks is every benchmark by name.
func benchmarks() map[string]benchmark {
	return map[string]benchmark{
		"gemm":         func(ctx context.Context, _ string) ([]metric.Figure, error) { return nnbench.GEMM(ctx) },
		"train":        benchTrain,
		"decode":       benchDecode,
		"charts":       inTemp(store.BenchCharts),
		"trajectories": inTemp(store.BenchTrajectories),
		"live":         benchLive,
		"alfworld":     benchGames,
		"async":        benchAsync,
	}
}

// sizes are the presets that are measured.
func sizes() []string { return []string{"pico", "nano"} }

func benchTrain(ctx context.Context, _ string) ([]metric.Figure, error) {
	var all []metric.Figure
	for _, s := range sizes() {
		f, err := nnbench.Train(ctx, s, nnbench.TrainOptions{})
		if err != nil {
			return nil, err
		}
		all = append(all, f...)
	}
	return all, nil
}

func benchDecode(ctx context.Context, _ string) ([]metric.Figure, error) {
	var all []metric.Figure
	for _, s := range sizes() {
		for _, batch := range []int{1, 8, 32, 64} {
			f, err := nnbench.Decode(ctx, s, batch, 1)
			if err != nil {
				return nil, err
			}
			all = append(all, f...)
		}
	}
	return all, nil
}

// inTemp runs a benchmark of the store in a directory of its own.
func inTemp(b benchmark) benchmark {
	return func(ctx context.Context, _ string) ([]metric.Figure, error) {
		dir, err := os.MkdirTemp("", "agentrl-bench-")
		if err != nil {
			return nil, err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		return b(ctx, dir)
	}
}

// viewers and liveTime are the load of the live benchmark.
const (
	viewers  = 200
	liveTime = 20 * time.Second
)

func benchLive(ctx context.Context, _ string) ([]metric.Figure, error) {
	r, err := live.BenchViewers(ctx, viewers, liveTime, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	name := func(s string) string { return fmt.Sprintf("live/%d_viewers/%s", viewers, s) }
	ms := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	return []metric.Figure{
		{Name: name("latency_p50"), Value: ms(r.P50), Unit: "ms"},
		{Name: name("latency_p95"), Value: ms(r.P95), Unit: "ms"},
		{Name: name("latency_max"), Value: ms(r.Max), Unit: "ms"},
		{Name: name("clients_closed"), Value: float64(r.Closed), Unit: "clients"},
		{Name: name("deltas_dropped"), Value: float64(r.Dropped), Unit: "messages"},
		{Name: name("items_missing"), Value: float64(r.Missing), Unit: "items"},
	}, nil
}

func benchAsync(ctx context.Context, _ string) ([]metric.Figure, error) {
	r, err := train.BenchAsync(ctx)
	if err != nil {
		return nil, err
	}
	return []metric.Figure{
		{Name: "async/trajectories", Value: r.AsyncPerSecond, Unit: "trajectories/s", Baseline: "synchronous, same episodes", Ratio: r.Ratio},
		{Name: "async/synchronous", Value: r.SyncPerSecond, Unit: "trajectories/s"},
		{Name: "async/staleness_mean", Value: r.StalenessMean, Unit: "updates"},
		{Name: "async/staleness_max", Value: float64(r.StalenessMax), Unit: "updates"},
		{Name: "async/dropped_tokens", Value: float64(r.DroppedTokens), Unit: "tokens"},
	}, nil
}

// gamesTime bounds each part of the environment's benchmark.
const gamesTime = 5 * time.Second

func benchGames(ctx context.Context, dir string) ([]metric.Figure, error) {
	r, err := alfworld.Bench(ctx, dir, gamesTime)
	if err != nil {
		return nil, err
	}
	return gameFigures(r), nil
}

func gameFigures(r alfworld.BenchResult) []metric.Figure {
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	return []metric.Figure{
		{Name: "alfworld/load_and_reset", Value: us(r.LoadReset) / 1000, Unit: "ms, median"},
		{Name: "alfworld/step", Value: us(r.Step), Unit: "us, median"},
		{Name: "alfworld/step_p99", Value: us(r.StepP99), Unit: "us"},
		{Name: "alfworld/steps", Value: r.StepsPerSec, Unit: "steps/s"},
		{Name: "alfworld/generate_level_2", Value: us(r.Generate) / 1000, Unit: "ms, median"},
	}
}
