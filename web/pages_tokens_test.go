package web

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/tokenizer"
)

type fixedCheckpoints []experiment.CheckpointInfo

func (f fixedCheckpoints) Checkpoints(context.Context, int64) ([]experiment.CheckpointInfo, error) {
	return f, nil
}

func TestCheckpointTexts(t *testing.T) {
	t.Parallel()
	tok, err := tokenizer.Train(slices.Values([]string{"go to the drawer, go to the shelf"}), tokenizer.TrainOptions{VocabSize: 300, Special: []string{"<|end|>"}})
	check(t, err)
	data, dir := t.TempDir(), filepath.Join("runs", "1", "new")
	check(t, os.MkdirAll(filepath.Join(data, dir), 0o700))
	f, err := os.Create(filepath.Join(data, dir, "tokenizer.json"))
	check(t, err)
	check(t, tok.Write(f))
	check(t, f.Close())
	now := time.Now()
	c := CheckpointTexts{Data: data, Store: fixedCheckpoints{{Dir: "gone", CreatedAt: now.Add(-time.Hour)}, {Dir: dir, CreatedAt: now}}}
	end, _ := tok.Special("<|end|>")
	ids := append(tok.Encode("go"), 0x1b, 0xff, end, 99_999, -1)
	got, err := c.TokenTexts(t.Context(), 1, ids)
	check(t, err)
	n := len(got)
	if len(got) != len(ids) || got[n-3] != "<|end|>" || got[n-2] != "" || got[n-1] != "" || got[n-5] != "\\x1B" || got[n-4] != "\\xFF" {
		t.Errorf("%q", got)
	}
	if _, err := (CheckpointTexts{Data: data, Store: fixedCheckpoints{}}).TokenTexts(t.Context(), 1, ids); errs.CodeOf(err) != errs.NotFound {
		t.Error(err)
	}
	for _, bad := range []string{"../elsewhere", "/etc", "missing"} {
		if _, err := (CheckpointTexts{Data: data, Store: fixedCheckpoints{{Dir: bad}}}).TokenTexts(t.Context(), 1, ids); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}
