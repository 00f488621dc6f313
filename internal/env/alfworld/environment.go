// Package alfworld is the household text game of env-alfworld.md: it plays the published game files unchanged and
// generates its own.
package alfworld

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"agentrl/internal/env"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

// The tasks.
const (
	TaskTrain = "alfworld-train"
	TaskValid = "alfworld-valid"
	TaskTest  = "alfworld-test"
)

func taskNames() []string { return []string{TaskTrain, TaskValid, TaskTest} }

// games gives the game of a sample.
type games interface {
	size() int64
	game(index int64) (*Game, error)
}

// environment implements env.Environment.
type environment struct {
	task  string
	conf  experiment.ALFWorld
	limit int
	games games
	lock  *sync.Mutex
}

// New builds the environment of one task: alfworld-train, alfworld-valid or alfworld-test. Without conf.Data its games
// are generated, sample i from the i-th seed of the split; with it they are the game files below that folder.
func New(task string, conf experiment.ALFWorld) (env.Environment, error) {
	conf, err := complete(conf)
	if err != nil {
		return nil, err
	}
	split := -1
	for i, t := range taskNames() {
		if t == task {
			split = i
		}
	}
	if split < 0 {
		return nil, errs.Field("task", "there is no task %q; allowed are %s", task, strings.Join(taskNames(), ", "))
	}
	e := &environment{task: task, conf: conf, limit: nativeTurns}
	if conf.Profile == Benchmark {
		e.limit = benchmarkTurns
	}
	if conf.Compat {
		e.lock = &sync.Mutex{}
	}
	lib := NewLibrary()
	if conf.Data != "" {
		e.games, err = openFolder(lib, conf, split)
	} else {
		e.games, err = openGenerated(lib, conf, split)
	}
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Tasks builds the environments of all tasks that have games.
func Tasks(conf experiment.ALFWorld) ([]env.Environment, error) {
	var out []env.Environment
	for _, t := range taskNames() {
		e, err := New(t, conf)
		if err != nil {
			if errs.CodeOf(err) == errs.NotFound && conf.Data != "" && len(out) > 0 {
				continue // the folder has no games of this split
			}
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

// Spec describes the task.
func (e *environment) Spec() env.Spec {
	return env.Spec{Task: e.task, Code: "AF", Tools: tools(), Samples: e.games.size(), TurnLimit: e.limit}
}

// Warnings says what is wrong with the data although the task can be played, for the log.
func (e *environment) Warnings() []string {
	f, ok := e.games.(*folder)
	if !ok || f.missing == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s: %d files of the split list do not exist; %d games of this task are left", e.task, f.missing, len(f.paths))}
}

// Start begins an episode of the sample.
func (e *environment) Start(ctx context.Context, sample env.Sample) (env.Episode, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if n := e.games.size(); sample.Index < 0 || sample.Index >= n {
		return nil, errs.Field("index", "task %q has samples 0 to %d, not %d", e.task, n-1, sample.Index)
	}
	g, err := e.games.game(sample.Index)
	if err != nil {
		return nil, err
	}
	return &episode{conf: e.conf, limit: e.limit, lock: e.lock, p: g.Reset()}, nil
}

// generated serves games by seed.
type generated struct {
	gen          *Generator
	first, count int64
}

func openGenerated(lib *Library, conf experiment.ALFWorld, split int) (games, error) {
	gen, err := NewGenerator(lib, conf.Level, conf.Wording)
	if err != nil {
		return nil, err
	}
	ranges := [3][2]int64{{0, trainSamples}, {validStart, validSamples}, {testStart, testSamples}}
	return &generated{gen, ranges[split][0], ranges[split][1]}, nil
}

func (g *generated) size() int64 { return g.count }

func (g *generated) game(index int64) (*Game, error) {
	kinds := g.gen.Kinds()
	return g.gen.Game(kinds[index%int64(len(kinds))], g.first+index)
}
