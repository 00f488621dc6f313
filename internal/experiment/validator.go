package experiment

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"agentrl/internal/errs"
)

// validator collects problems; every check adds at most one.
type validator struct {
	tasks    []string
	problems []*errs.Error
}

func (v *validator) add(path, format string, args ...any) {
	v.problems = append(v.problems, errs.Field(path, format, args...))
}

// whole checks an integer against inclusive bounds.
func (v *validator) whole(path string, n, lo, hi int) {
	if n < lo || n > hi {
		v.add(path, "%d is not allowed; a whole number from %d to %d is", n, lo, hi)
	}
}

// number checks a finite number against inclusive bounds.
func (v *validator) number(path string, x, lo, hi float64) {
	if math.IsNaN(x) || x < lo || x > hi {
		v.add(path, "%v is not allowed; a number from %v to %v is", x, lo, hi)
	}
}

func (v *validator) oneOf(path, s string, allowed ...string) {
	if !slices.Contains(allowed, s) {
		v.add(path, "%q is not allowed; allowed are %s", s, strings.Join(allowed, ", "))
	}
}

func (v *validator) task(path, name string) {
	switch {
	case name == "":
		v.add(path, "a task name is missing%s", v.allowedTasks())
	case v.tasks != nil && !slices.Contains(v.tasks, name):
		v.add(path, "there is no task %q%s", name, v.allowedTasks())
	}
}

func (v *validator) allowedTasks() string {
	if len(v.tasks) == 0 {
		return ""
	}
	return "; allowed are " + strings.Join(v.tasks, ", ")
}

func at(list string, i int, key string) string { return fmt.Sprintf("%s[%d].%s", list, i, key) }
