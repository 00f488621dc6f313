package alfworld

import (
	"context"
	"testing"
	"time"
)

func TestBench(t *testing.T) {
	t.Parallel()
	r, err := Bench(context.Background(), "", 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if r.Games == 0 || r.Steps != 30*r.Games || r.LoadReset <= 0 || r.Step <= 0 || r.StepP99 < r.Step || r.StepsPerSec <= 0 || r.Generate <= 0 {
		t.Errorf("Bench = %+v", r)
	}
	t.Logf("%+v", r)
}
