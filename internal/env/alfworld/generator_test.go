package alfworld

import (
	"context"
	"testing"

	"agentrl/internal/env"
	"agentrl/internal/experiment"
	"agentrl/internal/trajectory"
)

func TestLevel0Demo(t *testing.T) {
	e, err := New(TaskTrain, experiment.ALFWorld{})
	if err != nil {
		t.Fatal(err)
	}
	hist := map[int]int{}
	for i := range int64(300) {
		ep, err := e.Start(context.Background(), env.Sample{Task: TaskTrain, Index: i})
		if err != nil {
			t.Fatal(err)
		}
		if i < 3 {
			t.Log(ep.Open()[0].Content)
		}
		n := 0
		for {
			m, err := ep.(env.Demonstrator).Expert(Searching, uint64(i))
			if err != nil {
				t.Fatal(err)
			}
			s, err := ep.Step(context.Background(), m)
			if err != nil {
				t.Fatal(err)
			}
			n++
			if i < 3 {
				t.Log(m.ToolCalls[0].Arguments, s.Messages[0].Content, s.Status, s.Reward)
			}
			if s.Status != trajectory.Running {
				if s.Status != trajectory.Completed {
					t.Errorf("sample %d: %v", i, s.Status)
				}
				break
			}
		}
		hist[n]++
	}
	t.Log(hist)
}

func BenchmarkStart(b *testing.B) {
	e, _ := New(TaskTrain, experiment.ALFWorld{})
	for i := 0; b.Loop(); i++ {
		if _, err := e.Start(context.Background(), env.Sample{Index: int64(i % 100000)}); err != nil {
			b.Fatal(err)
		}
	}
}
