package alfworld

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"agentrl/internal/errs"
)

func fileBytes(t testing.TB, g *Generator, kind string, seed int64) []byte {
	t.Helper()
	f, err := g.File(kind, seed)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestGeneratorIsAPureFunction(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for level := range MaxLevel + 1 {
		a, err := NewGenerator(NewLibrary(), level, Current)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := NewGenerator(NewLibrary(), level, Legacy) // the file does not depend on the wording of play
		for _, kind := range a.Kinds() {
			for _, seed := range []int64{0, 999_999, validStart, testStart, unseenStart} {
				one, two := fileBytes(t, a, kind, seed), fileBytes(t, b, kind, seed)
				if string(one) != string(two) {
					t.Fatalf("level %d %s seed %d gives two files", level, kind, seed)
				}
				if seen[string(one)] {
					t.Errorf("level %d %s seed %d repeats another game", level, kind, seed)
				}
				seen[string(one)] = true
			}
		}
	}
}

func TestGeneratedGameIsItsFile(t *testing.T) {
	t.Parallel()
	for level := range MaxLevel + 1 {
		lib := NewLibrary()
		gen, err := NewGenerator(lib, level, Current)
		if err != nil {
			t.Fatal(err)
		}
		generatedGames(t, level, 24, func(kind string, seed int64, g *Game) {
			f, err := ParseFile(fileBytes(t, gen, kind, seed))
			if err != nil {
				t.Fatal(err)
			}
			h, err := lib.Load(f, Current)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.replay(); err != nil {
				t.Errorf("level %d %s seed %d: %v", level, kind, seed, err)
			}
			g.Walkthrough = h.Walkthrough
			if h.intro != g.intro || h.goalText != g.goalText || !slices.Equal(h.ids, g.ids) || !slices.Equal(h.names, g.names) ||
				!slices.Equal(h.typ, g.typ) || !reflect.DeepEqual(h.start, g.start) || !slices.Equal(h.consts, g.consts) ||
				!reflect.DeepEqual(h.goal, g.goal) || h.task != g.task || !slices.Equal(h.first.commands(), g.first.commands()) {
				t.Errorf("level %d %s seed %d: the game differs from its file", level, kind, seed)
			}
		})
	}
}

func TestGeneratorKeepsItsPromises(t *testing.T) {
	t.Parallel()
	type ranges struct{ receptacles, objects [2]int }
	want := []ranges{{[2]int{4, 6}, [2]int{4, 6}}, {[2]int{2, 10}, [2]int{9, 40}}, {[2]int{7, 54}, [2]int{19, 73}}, {[2]int{7, 54}, [2]int{19, 73}}, {[2]int{34, 54}, [2]int{50, 80}}}
	for level, w := range want {
		pairs := [2]map[string]bool{{}, {}}
		var receptacles, objects []int
		generatedGames(t, level, 120, func(kind string, seed int64, g *Game) {
			v := g.Reset().view()
			receptacles, objects = append(receptacles, len(v.list("receptacleatlocation"))), append(objects, len(v.list("objecttype")))
			if g.Reset().Won() || !strings.Contains(g.Intro(), "You are in the middle of a room.") {
				t.Errorf("level %d %s seed %d: bad start: %q", level, kind, seed, g.Intro())
			}
			goal := g.ids[g.task.object] + "/" + kind
			if g.task.place != nobody {
				goal += "/" + g.ids[g.task.place]
			}
			unseen := 0
			if isUnseen(seed) {
				unseen = 1
			}
			pairs[unseen][goal] = true
			wanted := 0
			for _, f := range v.list("inreceptacle") {
				if !v.has("objecttype", f.arg(0), g.task.object) {
					continue
				}
				wanted++
				closed := v.has("openable", f.arg(1))
				if level <= 1 && closed || level == 3 && !closed {
					t.Errorf("level %d %s seed %d: the wanted object lies in %s", level, kind, seed, g.names[f.arg(1)])
				}
				if g.task.place != nobody && v.has("receptacletype", f.arg(1), g.task.place) {
					t.Errorf("level %d %s seed %d: the wanted object lies in a receptacle of the goal", level, kind, seed)
				}
			}
			if wanted < 1 || kind == Two && wanted < 2 {
				t.Errorf("level %d %s seed %d: %d wanted objects", level, kind, seed, wanted)
			}
			if level == 0 && len(v.list("openable")) > 0 {
				t.Errorf("level 0 seed %d: something can be opened", seed)
			}
		})
		slices.Sort(receptacles)
		slices.Sort(objects)
		last := len(receptacles) - 1
		if receptacles[0] < w.receptacles[0] || receptacles[last] > w.receptacles[1] || objects[0] < w.objects[0] || objects[last] > w.objects[1] {
			t.Errorf("level %d: %d to %d receptacles, %d to %d objects", level, receptacles[0], receptacles[last], objects[0], objects[last])
		}
		for p := range pairs[1] {
			if pairs[0][p] {
				t.Errorf("level %d: the goal %s is both seen and unseen", level, p)
			}
		}
		if len(pairs[0]) < 12 || len(pairs[1]) < 3 {
			t.Errorf("level %d: only %d seen and %d unseen goals", level, len(pairs[0]), len(pairs[1]))
		}
	}
}

func TestSplitsShareNoGame(t *testing.T) {
	t.Parallel()
	for _, level := range []int{0, 2} {
		gen, err := NewGenerator(NewLibrary(), level, Current)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]int64{}
		for _, first := range []int64{0, validStart, testStart, unseenStart} {
			for i := range int64(150) {
				h, err := gen.build(Place, first+i)
				if err != nil {
					t.Fatal(err)
				}
				key := h.text(0) // layout and goal without the name
				if other, ok := seen[key]; ok {
					t.Errorf("level %d: seeds %d and %d give one game", level, other, first+i)
				}
				seen[key] = first + i
			}
		}
	}
}

func TestGeneratorRefuses(t *testing.T) {
	t.Parallel()
	for _, level := range []int{-1, MaxLevel + 1} {
		if _, err := NewGenerator(NewLibrary(), level, Current); errs.CodeOf(err) != errs.Invalid {
			t.Errorf("level %d: %v", level, err)
		}
	}
	g, err := NewGenerator(NewLibrary(), 0, Current)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Game(Heat, 1); errs.CodeOf(err) != errs.Invalid || !strings.Contains(err.Error(), Place) {
		t.Errorf("a type the level does not have: %v", err)
	}
}

// BenchmarkCampaign generates one game of each level per iteration, solves it, replays the file and generates it again.
// With -benchtime 2000x it covers 10,000 games.
func BenchmarkCampaign(b *testing.B) {
	var gens []*Generator
	lib := NewLibrary()
	for level := range MaxLevel + 1 {
		g, err := NewGenerator(lib, level, Current)
		if err != nil {
			b.Fatal(err)
		}
		gens = append(gens, g)
	}
	seen := map[string]bool{}
	i := int64(0)
	for b.Loop() {
		seed := []int64{i, validStart + i, testStart + i, unseenStart + i}[i%4]
		for _, g := range gens {
			kind := g.Kinds()[int(i/4)%len(g.Kinds())]
			one := fileBytes(b, g, kind, seed)
			if string(one) != string(fileBytes(b, g, kind, seed)) {
				b.Fatalf("level %d %s seed %d gives two files", g.level, kind, seed)
			}
			f, err := ParseFile(one)
			if err != nil {
				b.Fatal(err)
			}
			game, err := lib.Load(f, Current)
			if err != nil {
				b.Fatal(err)
			}
			if err := game.replay(); err != nil {
				b.Fatalf("level %d %s seed %d: %v", g.level, kind, seed, err)
			}
			_, key, _ := strings.Cut(f.Problem, "\n")
			if seen[key] {
				b.Fatalf("level %d %s seed %d repeats a game", g.level, kind, seed)
			}
			seen[key] = true
		}
		i++
	}
}

func BenchmarkStartLevel0(b *testing.B) {
	e, err := New(TaskTrain, confLevel(0))
	if err != nil {
		b.Fatal(err)
	}
	for i := int64(0); b.Loop(); i++ {
		if _, err := e.Start(context.Background(), sampleOf(TaskTrain, i%trainSamples)); err != nil {
			b.Fatal(err)
		}
	}
}
