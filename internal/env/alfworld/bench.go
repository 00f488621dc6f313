package alfworld

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// BenchResult holds measured figures of one core.
type BenchResult struct {
	LoadReset   time.Duration // median: parse a game file and reset, rules cached
	Step        time.Duration // median: one command with its admissible list
	StepP99     time.Duration
	StepsPerSec float64
	Generate    time.Duration // median: one game of level 2 with its file text
	Steps       int
	Games       int
}

// Bench measures the engine by random walks through the games below dir, or through generated ones of level 2 if dir is
// empty, for about the given time.
func Bench(ctx context.Context, dir string, d time.Duration) (BenchResult, error) {
	var out BenchResult
	lib := NewLibrary()
	gen, err := NewGenerator(lib, 2, Current)
	if err != nil {
		return out, err
	}
	files, generate, err := benchFiles(ctx, gen, dir)
	if err != nil {
		return out, err
	}
	out.Generate = median(generate)
	if _, err := lib.Load(files[0], Current); err != nil { // the rules are parsed once for all games
		return out, err
	}
	var loads, steps []time.Duration
	r := rand.New(rand.NewPCG(1, 2))
	var busy time.Duration
	for start := time.Now(); time.Since(start) < d || out.Games == 0; out.Games++ {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		t := time.Now()
		g, err := lib.Load(files[out.Games%len(files)], Current)
		if err != nil {
			return out, err
		}
		p := g.Reset()
		loads = append(loads, time.Since(t))
		commands := p.Commands()
		for range 30 {
			t = time.Now()
			if _, err := p.Step(commands[r.IntN(len(commands))]); err != nil {
				return out, err
			}
			commands = p.Commands()
			steps = append(steps, time.Since(t))
			busy += steps[len(steps)-1]
			out.Steps++
		}
	}
	out.LoadReset, out.Step = median(loads), median(steps)
	out.StepP99 = steps[len(steps)*99/100]
	out.StepsPerSec = float64(out.Steps) / busy.Seconds()
	return out, nil
}

// benchFiles reads the games below dir, or generates some; it always measures generating.
func benchFiles(ctx context.Context, gen *Generator, dir string) ([]*File, []time.Duration, error) {
	var files []*File
	var took []time.Duration
	for i := range 60 {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		t := time.Now()
		f, err := gen.File(Kinds()[i%len(Kinds())], int64(i))
		if err != nil {
			return nil, nil, err
		}
		took = append(took, time.Since(t))
		files = append(files, f)
	}
	if dir == "" {
		return files, took, nil
	}
	paths, err := LoadDir(dir)
	if err != nil {
		return nil, nil, err
	}
	if len(paths) == 0 {
		return nil, nil, bad("there is no .tw-pddl or .tw-pddl.gz file below %q", dir)
	}
	files = files[:0]
	for _, p := range paths[:min(len(paths), 300)] {
		f, err := ReadFile(p)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	return files, took, nil
}

// median sorts the list.
func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}
