package alfworld

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// dataDir returns the folder of published games, or skips the test where no reference data is given.
func dataDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("AGENTRL_TEST_DATA")
	if dir == "" {
		t.Skip("AGENTRL_TEST_DATA, the folder of reference data, is not set")
	}
	return filepath.Join(dir, "alfworld")
}

func TestReplayPublished(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	calls := 0
	r, err := Replay(context.Background(), dir, func(done, total int) { calls++ })
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Details {
		t.Error(d)
	}
	if r.Games < 259 || r.WonAtLast != r.Games || r.Mismatches != 0 || calls != r.Games {
		t.Errorf("%d games, %d won at the last command, %d mismatches, %d reports", r.Games, r.WonAtLast, r.Mismatches, calls)
	}
}

type transcript struct {
	Source      string
	Match       float64
	Initial     string
	Admissible0 []string
	GameFile    string `json:"game_file"`
	Confidence  string
	Steps       []struct {
		Action     string
		Obs        string
		Published  string `json:"published_obs"`
		Engine     string `json:"engine_obs"`
		Won        bool
		Admissible []string
	}
}

func transcripts(t *testing.T, name string) []transcript {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dataDir(t), "transcripts", name))
	if err != nil {
		t.Fatal(err)
	}
	var out []transcript
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func loadPublished(t *testing.T, file, wording string) *Game {
	t.Helper()
	f, err := ReadFile(filepath.Join(dataDir(t), "transcripts", file))
	if err != nil {
		t.Fatal(err)
	}
	g, err := NewLibrary().Load(f, wording)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestReactTranscripts(t *testing.T) {
	t.Parallel()
	whole := 0
	for _, tr := range transcripts(t, "transcripts_react_matched.json") {
		p := loadPublished(t, tr.GameFile, Current).Reset()
		for i, s := range tr.Steps {
			got, err := p.Step(translateCommand(s.Action, Current))
			if err != nil {
				t.Fatal(err)
			}
			if got != s.Engine {
				t.Errorf("%s step %d %q: got %q, want %q", tr.Source, i, s.Action, got, s.Engine)
			}
		}
		if tr.Match != 1 {
			continue
		}
		whole++
		// the transcripts were written with the legacy texts, whose arrival sentence their authors dropped
		p = loadPublished(t, tr.GameFile, Legacy).Reset()
		for i, s := range tr.Steps {
			got, err := p.Step(s.Action)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(got, "You arrive at loc ") {
				_, got, _ = strings.Cut(got, ". ")
			}
			if got != s.Published {
				t.Errorf("%s step %d %q: got %q, published %q", tr.Source, i, s.Action, got, s.Published)
			}
		}
		if !p.Won() {
			t.Errorf("%s is not won", tr.Source)
		}
	}
	if whole != 12 {
		t.Errorf("%d transcripts match as a whole, want 12", whole)
	}
}

func TestVerifiedTranscripts(t *testing.T) {
	t.Parallel()
	compared := 0
	for _, tr := range transcripts(t, "transcripts_verified.json") {
		if tr.GameFile == "" {
			continue
		}
		g := loadPublished(t, tr.GameFile, Current)
		p := g.Reset()
		if tr.Initial != "" && g.Intro() != tr.Initial {
			t.Errorf("%s: intro %q, want %q", tr.GameFile, g.Intro(), tr.Initial)
		}
		if len(tr.Admissible0) > 0 && !slices.Equal(p.Commands(), tr.Admissible0) {
			t.Errorf("%s: first commands %q, want %q", tr.GameFile, p.Commands(), tr.Admissible0)
		}
		for i, s := range tr.Steps {
			got, err := p.Step(s.Action)
			if err != nil {
				t.Fatal(err)
			}
			compared++
			if got != s.Obs || p.Won() != s.Won {
				t.Errorf("%s step %d %q: got %q (won %v), want %q (won %v)", tr.GameFile, i, s.Action, got, p.Won(), s.Obs, s.Won)
			}
			if len(s.Admissible) > 0 && !slices.Equal(p.Commands(), s.Admissible) {
				t.Errorf("%s step %d: commands %q, want %q", tr.GameFile, i, p.Commands(), s.Admissible)
			}
		}
	}
	if compared == 0 {
		t.Error("no step was compared")
	}
}
