package alfworld

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

func TestPlay(t *testing.T) {
	t.Parallel()
	g := mini{facts: miniWorld}.start(t).g
	for _, c := range []struct {
		name, in string
		has      []string
		not      string
	}{
		{"win", "?\ngo to desk 1\n\ntake mug 1 from desk 1\nmove mug 1 to shelf 1\nlook\n", []string{"go to drawer 1\n", "You pick up the mug 1", "You won."}, "Next to it"},
		{"quit", "look\nquit\nlook\n", []string{"You are in the middle"}, "You won."},
		{"end of input without newline", "dance", []string{nothing}, "You won."},
	} {
		var out strings.Builder
		if err := Play(context.Background(), strings.NewReader(c.in), &out, g); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, want := range c.has {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is missing in %q", c.name, want, out.String())
			}
		}
		if strings.Contains(out.String(), c.not) {
			t.Errorf("%s: %q is in %q", c.name, c.not, out.String())
		}
	}
	done, cancel := context.WithCancel(context.Background())
	cancel()
	if err := Play(done, strings.NewReader("look\n"), &strings.Builder{}, g); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// writeGames fills a folder with generated games at the given paths.
func writeGames(t *testing.T, paths ...string) string {
	t.Helper()
	dir := t.TempDir()
	gen, err := NewGenerator(NewLibrary(), 1, Current)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range paths {
		full := filepath.Join(dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, fileBytes(t, gen, Place, int64(i)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReplayCountsMismatches(t *testing.T) {
	t.Parallel()
	dir := writeGames(t, "a/game.tw-pddl", "b/game.tw-pddl")
	if err := os.WriteFile(filepath.Join(dir, "broken.tw-pddl"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := ReadFile(filepath.Join(dir, "a", "game.tw-pddl"))
	if err != nil {
		t.Fatal(err)
	}
	f.Walkthrough = f.Walkthrough[:len(f.Walkthrough)-1]
	if err := os.WriteFile(filepath.Join(dir, "short.tw-pddl"), encode(t, f), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Replay(context.Background(), dir, nil)
	if err != nil || r.Games != 4 || r.WonAtLast != 2 || r.Mismatches != 2 || len(r.Details) != 2 {
		t.Errorf("Replay = %+v, %v", r, err)
	}
	if _, err := Replay(context.Background(), t.TempDir(), nil); errs.CodeOf(err) != errs.NotFound {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := Replay(context.Background(), filepath.Join(dir, "nowhere"), nil); errs.CodeOf(err) != errs.NotFound {
		t.Errorf("a missing folder: %v", err)
	}
}

func TestFolderSplits(t *testing.T) {
	t.Parallel()
	dir := writeGames(t, "json/train/x/game.tw-pddl", "json/train/y/game.tw-pddl", "json/valid_seen/x/game.tw-pddl", "json/valid_unseen/z/game.tw-pddl")
	for task, want := range map[string]int64{TaskTrain: 2, TaskValid: 1, TaskTest: 1} {
		e, err := New(task, experiment.ALFWorld{Data: dir})
		if err != nil {
			t.Fatal(err)
		}
		if n := e.Spec().Samples; n != want {
			t.Errorf("%s has %d samples, want %d", task, n, want)
		}
		for range 2 { // the second time from the cache
			ep, err := e.Start(context.Background(), sampleOf(task, 0))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(ep.Open()[0].Content, goalIntro) {
				t.Errorf("opening %v", ep.Open())
			}
		}
	}
	if all, err := Tasks(experiment.ALFWorld{Data: writeGames(t, "train/game.tw-pddl")}); err != nil || len(all) != 1 {
		t.Errorf("a folder with training games only: %d tasks, %v", len(all), err)
	}
	if _, err := Tasks(experiment.ALFWorld{Data: t.TempDir()}); errs.CodeOf(err) != errs.Invalid {
		t.Errorf("an empty folder: %v", err)
	}

	var names []string
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		names = append(names, string(c)+".tw-pddl")
	}
	flat := writeGames(t, names...)
	open := func(task string) []string {
		e, err := New(task, experiment.ALFWorld{Data: flat})
		if err != nil {
			t.Fatal(err)
		}
		return e.(*environment).games.(*folder).paths
	}
	train, valid := open(TaskTrain), open(TaskValid)
	if len(train)+len(valid) != 26 || len(valid) == 0 || len(valid) > 8 {
		t.Errorf("%d for training, %d held out", len(train), len(valid))
	}
	for _, p := range valid {
		if slices.Contains(train, p) {
			t.Errorf("%s is in both", p)
		}
	}
}

func TestSplitList(t *testing.T) {
	t.Parallel()
	dir := writeGames(t, "json_2.1.1/valid_unseen/a/game.tw-pddl", "json_2.1.1/valid_unseen/b/game.tw-pddl.gz")
	list := filepath.Join(dir, "new_std.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"pick_two_obj":["json_2.1.1/valid_unseen/b/game.tw-pddl","json_2.1.1/valid_unseen/c/game.tw-pddl"],"look_at_obj":["json_2.1.1/valid_unseen/a/game.tw-pddl"]}`)
	paths, missing, err := ReadSplitList(list, dir)
	if err != nil || missing != 1 || len(paths) != 2 || !strings.HasSuffix(paths[0], "b/game.tw-pddl.gz") || !strings.HasSuffix(paths[1], "a/game.tw-pddl") {
		t.Errorf("paths %q, %d missing, %v", paths, missing, err)
	}
	e, err := New(TaskTest, experiment.ALFWorld{Data: list})
	if err != nil {
		t.Fatal(err)
	}
	w := e.(interface{ Warnings() []string }).Warnings()
	if len(w) != 1 || !strings.Contains(w[0], "1 files") || !strings.Contains(w[0], "2 games") {
		t.Errorf("warnings %q", w)
	}
	for text, want := range map[string]string{
		`[]`: "object", `{"a":3}`: "lists", `{"a":["../secret"]}`: "below", `{"a":["/etc/passwd"]}`: "below", `{"a":["x.tw-pddl"]`: "object",
	} {
		write(text)
		if _, _, err := ReadSplitList(list, dir); errs.CodeOf(err) != errs.Invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
