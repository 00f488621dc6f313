package alfworld

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"agentrl/internal/env"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/trajectory"
)

func startGame(g *Game, conf experiment.ALFWorld, limit int) *episode {
	conf, err := complete(conf)
	if err != nil {
		panic(err)
	}
	return &episode{conf: conf, limit: limit, p: g.Reset()}
}

// run lets an expert play to the end; with noise that share of its turns is replaced by invalid or arbitrary actions.
// It returns the number of turns.
func run(e *episode, expert string, seed uint64, noise float64) (int, trajectory.Status, error) {
	r := rand.New(rand.NewPCG(seed, 7))
	for n := 1; ; n++ {
		m, err := e.Expert(expert, seed)
		if err != nil {
			return n, "", err
		}
		if x := r.Float64(); x < noise/2 {
			m = callFor("x", "fly to the moon "+strconv.Itoa(n))
		} else if x < noise {
			_, all := e.Admissible()
			m = callFor("x", all[r.IntN(len(all))])
		}
		s, err := e.Step(context.Background(), m)
		if err != nil {
			return n, "", err
		}
		if s.Status != trajectory.Running {
			return n, s.Status, nil
		}
	}
}

func generatedGames(t testing.TB, level, n int, play func(kind string, seed int64, g *Game)) {
	t.Helper()
	gen, err := NewGenerator(NewLibrary(), level, Current)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(n) {
		seed := []int64{i, validStart + i, testStart + i, unseenStart + i}[i%4]
		kind := gen.Kinds()[int(i/4)%len(gen.Kinds())]
		g, err := gen.Game(kind, seed)
		if err != nil {
			t.Fatal(err)
		}
		play(kind, seed, g)
	}
}

func TestPlannerWinsGeneratedGames(t *testing.T) {
	t.Parallel()
	const n = 300
	for level := range MaxLevel + 1 {
		t.Run(fmt.Sprint("level ", level), func(t *testing.T) {
			t.Parallel()
			longest := 0
			generatedGames(t, level, n, func(kind string, seed int64, g *Game) {
				if g.Kind() != kind {
					t.Errorf("%s seed %d: the goal reads as %q", kind, seed, g.Kind())
				}
				plan, err := g.plan()
				if err != nil {
					t.Fatalf("%s seed %d: %v", kind, seed, err)
				}
				g.Walkthrough = plan
				if err := g.replay(); err != nil {
					t.Errorf("%s seed %d: %v", kind, seed, err)
				}
				longest = max(longest, len(plan))
			})
			if level == 0 && longest > 10 || longest > maxPlan {
				t.Errorf("the longest plan has %d commands", longest)
			}
			t.Logf("%d games, longest plan %d", n, longest)
		})
	}
}

func TestSearcherWinsGeneratedGames(t *testing.T) {
	t.Parallel()
	for level := range MaxLevel + 1 {
		t.Run(fmt.Sprint("level ", level), func(t *testing.T) {
			t.Parallel()
			turns := []int{}
			generatedGames(t, level, 60, func(kind string, seed int64, g *Game) {
				for _, noise := range []float64{0, 0.3} {
					n, status, err := run(startGame(g, experiment.ALFWorld{Level: level}, 2000), Searching, uint64(seed), noise)
					if err != nil || status != trajectory.Completed {
						t.Fatalf("%s seed %d, noise %v: %v after %d turns, %v", kind, seed, noise, status, n, err)
					}
					if noise == 0 {
						turns = append(turns, n)
					}
				}
			})
			slices.Sort(turns)
			t.Logf("turns: median %d, most %d", turns[len(turns)/2], turns[len(turns)-1])
			if level == 0 && turns[len(turns)-1] > 10 {
				t.Errorf("at level 0 the search took %d turns", turns[len(turns)-1])
			}
		})
	}
}

func TestPlannerRecovers(t *testing.T) {
	t.Parallel()
	for _, level := range []int{0, 2, 4} {
		generatedGames(t, level, 60, func(kind string, seed int64, g *Game) {
			n, status, err := run(startGame(g, experiment.ALFWorld{Level: level}, 2000), Privileged, uint64(seed), 0.3)
			if err != nil || status != trajectory.Completed {
				t.Fatalf("level %d %s seed %d: %v after %d turns, %v", level, kind, seed, status, n, err)
			}
		})
	}
}

func TestExpertsWinPublishedGames(t *testing.T) {
	t.Parallel()
	paths, err := LoadDir(dataDir(t))
	if err != nil {
		t.Fatal(err)
	}
	lib := NewLibrary()
	longest, most := 0, 0
	for i, path := range paths {
		f, err := ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		wording := []string{Current, Legacy}[i%2]
		g, err := lib.Load(f, wording)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := g.plan()
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		longest = max(longest, len(plan))
		n, status, err := run(startGame(g, experiment.ALFWorld{Wording: wording, Data: "x"}, 500), Searching, uint64(i), 0.1)
		if err != nil || status != trajectory.Completed {
			t.Errorf("%s: searching: %v after %d turns, %v", path, status, n, err)
		}
		most = max(most, n)
	}
	t.Logf("%d games: longest plan %d commands, longest search %d turns", len(paths), longest, most)
	if longest > maxPlan {
		t.Errorf("the longest plan has %d commands", longest)
	}
}

func TestExpertNeedsNoFacts(t *testing.T) {
	t.Parallel()
	// two games that look the same to the eye lead to the same first moves: the searcher sees texts only
	e, err := New(TaskTrain, experiment.ALFWorld{})
	if err != nil {
		t.Fatal(err)
	}
	ep, err := e.Start(context.Background(), env.Sample{Index: 1})
	if err != nil {
		t.Fatal(err)
	}
	d := ep.(env.Demonstrator)
	first := map[string]bool{}
	for seed := range uint64(40) {
		a, err := d.Expert(Searching, seed)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := d.Expert(Searching, seed)
		if a.ToolCalls[0].Arguments != b.ToolCalls[0].Arguments {
			t.Error("one seed gives two answers")
		}
		first[a.ToolCalls[0].Arguments] = true
	}
	if len(first) < 3 {
		t.Errorf("40 seeds begin with only %d different moves", len(first))
	}
	if _, err := d.Expert("oracle", 1); errs.CodeOf(err) != errs.Invalid {
		t.Errorf("unknown expert: %v", err)
	}
}
