//go:build unix

package alfworld

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestReplayOfAPipe holds that a pipe with the name of a game is a mismatch and not a wait for ever.
func TestReplayOfAPipe(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "game.tw-pddl"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Replay(t.Context(), dir, nil)
	if err != nil || r.Mismatches != 1 || len(r.Details) != 1 || !strings.Contains(r.Details[0], "not a regular file") {
		t.Errorf("%+v, %v", r, err)
	}
}
