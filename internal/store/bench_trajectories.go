package store

import (
	"bytes"
	"context"
	"math/rand/v2"
	"path/filepath"
	"time"

	"agentrl/internal/experiment"
	"agentrl/internal/metric"
	"agentrl/internal/trajectory"
)

// BenchTrajectories measures how many trajectories of eight turns a second a new SQLite database below dir takes, in
// commits of 8 groups of 8; the baseline commits each by itself.
func BenchTrajectories(ctx context.Context, dir string) ([]metric.Figure, error) {
	s, err := Open(ctx, Options{URL: filepath.Join(dir, "bench-trajectories.db")})
	if err != nil {
		return nil, err
	}
	figures, err := s.benchTrajectories(ctx)
	if cerr := s.Close(); err == nil {
		err = cerr
	}
	return figures, err
}

func (s *Store) benchTrajectories(ctx context.Context) ([]metric.Figure, error) {
	leases, err := s.benchRuns(ctx, 2)
	if err != nil {
		return nil, err
	}
	const n = 800
	rate := func(l experiment.Lease, batch int) (float64, error) {
		list := make([]*trajectory.Trajectory, n)
		for i := range list {
			list[i] = benchTrajectory(l, i)
		}
		begin := time.Now()
		for part := range chunked(list, batch) {
			if err := s.CommitStep(ctx, l, experiment.StepCommit{Trajectories: part}); err != nil {
				return 0, err
			}
		}
		return n / time.Since(begin).Seconds(), nil
	}
	single, err := rate(leases[0], 1)
	if err != nil {
		return nil, err
	}
	grouped, err := rate(leases[1], 64)
	if err != nil {
		return nil, err
	}
	return []metric.Figure{{Name: "trajectories/ingest", Value: grouped, Unit: "trajectories/s", Baseline: "one commit each", Ratio: grouped / single}}, nil
}

// benchTrajectory is an episode of eight turns and about 1,000 tokens.
func benchTrajectory(l experiment.Lease, i int) *trajectory.Trajectory {
	rng := rand.New(rand.NewPCG(uint64(i), 5))
	words := []string{"look", "open", "the", "cabinet", "apple", "go to", "desk", "take", "fridge", "nothing happens"}
	sentence := func(n int) string {
		var b bytes.Buffer
		for range n {
			b.WriteString(words[rng.IntN(len(words))])
			b.WriteByte(' ')
		}
		return b.String()
	}
	t := &trajectory.Trajectory{ID: trajectory.MakeID(l.RunID, l.Attempt, "rl", int64(i/8), i%8, 0), Phase: "rl", Group: int64(i / 8), Member: i % 8,
		Task: "bench", Status: trajectory.Completed, Open: []trajectory.Message{{Role: trajectory.System, Content: sentence(60)}}}
	for k := range 8 {
		t.Turns = append(t.Turns, trajectory.Turn{Index: k, PolicyID: "current", Letter: "C", TokenStart: 128 * k, TokenEnd: 128*k + 32, Trainable: true,
			Message: trajectory.Message{Role: trajectory.Assistant, Content: sentence(15)}, Replies: []trajectory.Message{{Role: trajectory.ToolRole, Content: sentence(60)}}})
	}
	for range 1024 {
		t.Tokens = append(t.Tokens, rng.Int32N(4096))
		t.Logprobs = append(t.Logprobs, -rng.Float32())
		t.TrainLogprobs = append(t.TrainLogprobs, -rng.Float32())
	}
	return t
}
