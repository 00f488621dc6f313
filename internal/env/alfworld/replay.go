package alfworld

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"agentrl/internal/errs"
)

// LoadDir lists the game files below dir, sorted by path: names that end in .tw-pddl or .tw-pddl.gz.
func LoadDir(dir string) ([]string, error) {
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() && (strings.HasSuffix(path, ".tw-pddl") || strings.HasSuffix(path, ".tw-pddl.gz")) {
			out = append(out, path)
		}
		return nil
	})
	if err != nil {
		return nil, errs.Wrap(errs.NotFound, err, "the folder of games %q cannot be read", dir)
	}
	slices.Sort(out)
	return out, nil
}

// ReplayResult counts how stored walkthroughs went. Details has a line for each game with a mismatch.
type ReplayResult struct {
	Games      int
	WonAtLast  int
	Mismatches int
	Details    []string
}

// Replay plays the stored walkthrough of every game below dir: each command must be possible when it comes, and the
// game must be won exactly at the last one. report, which may be nil, is told after every game.
func Replay(ctx context.Context, dir string, report func(done, total int)) (ReplayResult, error) {
	var r ReplayResult
	paths, err := LoadDir(dir)
	if err != nil {
		return r, err
	}
	if len(paths) == 0 {
		return r, errs.New(errs.NotFound, "there is no .tw-pddl or .tw-pddl.gz file below %q", dir)
	}
	lib := NewLibrary()
	for i, path := range paths {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		r.Games++
		if err := replayFile(lib, path); err != nil {
			r.Mismatches++
			r.Details = append(r.Details, fmt.Sprintf("%s: %v", path, err))
		} else {
			r.WonAtLast++
		}
		if report != nil {
			report(i+1, len(paths))
		}
	}
	return r, nil
}

func replayFile(lib *Library, path string) error {
	f, err := ReadFile(path)
	if err != nil {
		return err
	}
	g, err := lib.Load(f, Current)
	if err != nil {
		return err
	}
	return g.replay()
}

// replay holds the walkthrough of a game against the rules.
func (g *Game) replay() error {
	if len(g.Walkthrough) == 0 {
		return bad("it has no walkthrough")
	}
	p := g.Reset()
	if p.Won() {
		return bad("it is won before the first command")
	}
	for i, c := range g.Walkthrough {
		if !slices.Contains(p.Commands(), c) {
			return bad("command %d, %q, is not possible", i+1, c)
		}
		text, err := p.Step(c)
		if err != nil {
			return err
		}
		if strings.Contains(text, nothing) {
			return bad("command %d, %q, had no effect", i+1, c)
		}
		if last := i == len(g.Walkthrough)-1; p.Won() != last {
			return bad("after command %d of %d, %q, won is %v", i+1, len(g.Walkthrough), c, p.Won())
		}
	}
	return nil
}
