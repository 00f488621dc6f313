package train

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentrl/internal/experiment"
)

// TestNoCheckpointIsIntact holds that a run whose checkpoints are all damaged says so, and does not quietly begin again.
func TestNoCheckpointIsIntact(t *testing.T) {
	t.Parallel()
	r := newRig(t, "sync")
	r.store.onWrite = func(_ int, c experiment.StepCommit) error {
		if c.Progress.Step == 10 {
			return experiment.ErrFenced
		}
		return nil
	}
	if res := r.run(t.Context(), 1); !errors.Is(res.Err, experiment.ErrFenced) {
		t.Fatalf("%+v", res)
	}
	c := newCheckpoints(r.data, 5, nil)
	list, err := c.list()
	if err != nil || len(list) == 0 {
		t.Fatalf("checkpoints %+v, %v", list, err)
	}
	for _, k := range list {
		if err := os.Truncate(filepath.Join(c.root(), k.name, stateFile), 10); err != nil {
			t.Fatal(err)
		}
	}
	r.store.onWrite = nil
	res := r.run(t.Context(), 2)
	if res.Outcome.State != experiment.Failed || !strings.Contains(res.Outcome.Reason, "can be read") {
		t.Fatalf("outcome %+v", res.Outcome)
	}
	if again, err := c.list(); err != nil || len(again) != len(list) {
		t.Errorf("checkpoints %+v, %v", again, err)
	}
	if _, begun := r.store.starts[2]; begun {
		t.Error("the attempt recorded a start, which would replace the points of the first one")
	}
}
