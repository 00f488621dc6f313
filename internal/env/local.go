package env

import (
	"context"
	"sort"
	"strings"

	"agentrl/internal/errs"
)

// Local is a Gateway over environments in the same process.
type Local struct {
	specs []Spec
	envs  map[string]Environment
}

// NewLocal serves the given environments. Two environments of one task are refused.
func NewLocal(envs ...Environment) (*Local, error) {
	l := &Local{envs: make(map[string]Environment, len(envs))}
	for _, e := range envs {
		s := e.Spec()
		if _, ok := l.envs[s.Task]; ok {
			return nil, errs.New(errs.Conflict, "task %q is served by two environments", s.Task)
		}
		l.envs[s.Task] = e
		l.specs = append(l.specs, s)
	}
	sort.Slice(l.specs, func(i, j int) bool { return l.specs[i].Task < l.specs[j].Task })
	return l, nil
}

// Specs lists the tasks, sorted by task.
func (l *Local) Specs(ctx context.Context) ([]Spec, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return append([]Spec(nil), l.specs...), nil
}

// Start begins an episode. An unknown task is NotFound and an index outside the task is Invalid; both say what there is.
func (l *Local) Start(ctx context.Context, sample Sample) (Episode, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e, ok := l.envs[sample.Task]
	if !ok {
		names := make([]string, len(l.specs))
		for i := range l.specs {
			names[i] = l.specs[i].Task
		}
		have := strings.Join(names, ", ")
		if have == "" {
			have = "none"
		}
		err := errs.New(errs.NotFound, "there is no task %q; allowed are: %s", sample.Task, have)
		err.Field = "task"
		return nil, err
	}
	if n := e.Spec().Samples; sample.Index < 0 || sample.Index >= n {
		return nil, errs.Field("index", "task %q has samples 0 to %d, not %d", sample.Task, n-1, sample.Index)
	}
	return e.Start(ctx, sample)
}
