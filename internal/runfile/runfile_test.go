package runfile

import (
	"reflect"
	"strings"
	"testing"

	"agentrl/internal/experiment"
)

var tasks = []string{"alfworld-test", "alfworld-train", "alfworld-valid"}

const small = "name: x\ntasks:\n  - {task: alfworld-train, weight: 1}\n"

func TestPresetsAreValid(t *testing.T) {
	t.Parallel()
	if len(Presets()) == 0 || Presets()[0].Name != "quickstart" {
		t.Fatalf("presets %v", Presets())
	}
	for _, p := range Presets() {
		text, ok := Preset(p.Name)
		if !ok {
			t.Fatalf("preset %s is missing", p.Name)
		}
		c, problems := Parse(text, tasks)
		if len(problems) > 0 {
			t.Errorf("%s: %+v", p.Name, problems)
		}
		if c.Name != p.Name {
			t.Errorf("%s is called %q", p.Name, c.Name)
		}
		again, problems := Parse(Format(c), tasks)
		if len(problems) > 0 || !reflect.DeepEqual(c, again) {
			t.Errorf("%s does not survive Format: %+v\n%+v\n%+v", p.Name, problems, c, again)
		}
	}
	if _, ok := Preset("../runfile"); ok {
		t.Error("a preset outside the list was found")
	}
}

func TestDefaultsAndValues(t *testing.T) {
	t.Parallel()
	c, problems := Parse([]byte(small+"seed: 18446744073709551615\nalgorithm: {learning_rate: 2e-4, norm_by_std: false}\npipeline:\n  group_timeout: 90s\n"), tasks)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	d := experiment.Defaults()
	if c.Algorithm.LearningRate != 2e-4 || c.Algorithm.NormByStd || c.Seed != 18446744073709551615 || c.Pipeline.GroupTimeout.String() != "1m30s" {
		t.Errorf("%+v", c)
	}
	if c.Algorithm.GroupSize != d.Algorithm.GroupSize || !reflect.DeepEqual(c.Policy, d.Policy) {
		t.Error("what was left out has not the default")
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		line       int
		path, want string
	}{
		{"unknown key", small + "nmae: y\n", 4, "nmae", "allowed are name, seed, tasks"},
		{"unknown nested key", small + "algorithm:\n  group_sise: 8\n", 5, "algorithm.group_sise", "group_size"},
		{"unknown key in a list", "name: x\ntasks:\n  - {task: alfworld-train, wheight: 1}\n", 3, "tasks[0].wheight", "allowed are task, weight"},
		{"wrong type", small + "algorithm:\n  group_size: many\n", 5, "algorithm.group_size", "a whole number is"},
		{"fraction for a whole number", small + "algorithm:\n  group_size: 2.5\n", 5, "algorithm.group_size", "whole number"},
		{"quoted number", small + "algorithm:\n  group_size: \"8\"\n", 5, "algorithm.group_size", "whole number"},
		{"not a number", small + "algorithm:\n  learning_rate: .nan\n", 5, "algorithm.learning_rate", "a number such as"},
		{"list for a number", small + "seed: [1]\n", 4, "seed", "a list is not allowed"},
		{"number for a name", "name: 7\n", 1, "name", "text is"},
		{"text for a switch", small + "sampling: {constrained: maybe}\n", 4, "sampling.constrained", "true and false"},
		{"bad duration", small + "budget: {wall_time: soon}\n", 4, "budget.wall_time", "90s, 20m or 1h"},
		{"keys for a list", small + "eval: {tasks: alfworld-valid}\n", 4, "eval.tasks", "must be a list"},
		{"scalar for keys", small + "algorithm: fast\n", 4, "algorithm", "must be keys with values"},
		{"key twice", small + "name: y\n", 4, "", ""},
		{"not YAML", "name: [x\n", 0, "", "not valid YAML"},
		{"two documents", small + "---\nname: y\n", 5, "", "second one"},
		{"alias", "name: &a x\ntasks: *a\n", 1, "name", "anchors"},
		{"list at the top", "- 1\n", 1, "", "a run file is a list of keys"},
		{"group of one", small + "algorithm: {group_size: 1}\n", 4, "algorithm.group_size", "at least 2"},
		{"all weights zero", "name: x\ntasks:\n  - {task: alfworld-train, weight: 0}\n", 2, "tasks", "all weights are zero"},
		{"unknown task", "name: x\ntasks:\n  - {task: alfword, weight: 1}\n", 3, "tasks[0].task", "alfworld-test, alfworld-train, alfworld-valid"},
		{"no steps", small + "budget: {steps: 0}\n", 4, "budget.steps", "never end"},
		{"stale share rounds to nothing", small + "pipeline: {concurrency: 8, first_batch_factor: 1}\npolicy:\n  pool:\n    mode: cross\n    members:\n      - {policy: current, weight: 0.99}\n      - {policy: stale, weight: 0.01, refresh_every: 5}\n", 10, "policy.pool.members[1].weight", "rounds to 0"},
		{"missing tasks", "name: x\n", 0, "tasks", "at least one task"},
		{"broken UTF-8", "name: \xff\n", 1, "", "UTF-8"},
		{"too large", strings.Repeat("#", MaxBytes+1), 1, "", "at most"},
		{"deep", "name: " + strings.Repeat("[", 5000) + "\n", 1, "", "nested"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, problems := Parse([]byte(tt.text), tasks)
			if len(problems) == 0 {
				t.Fatal("accepted")
			}
			p := problems[0]
			if tt.line > 0 && p.Line != tt.line || p.Path != tt.path || !strings.Contains(p.Message, tt.want) {
				t.Errorf("got %+v, want line %d, path %q, message with %q", p, tt.line, tt.path, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, p := range Presets() {
		text, _ := Preset(p.Name)
		f.Add(text)
	}
	f.Add([]byte("a: &x [*x]"))
	f.Add([]byte("tasks:\n- {task: a, weight: 1e999}"))
	f.Add([]byte("<<: {name: x}"))
	f.Add([]byte("? [a]: b\n: c"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, problems := Parse(data, tasks)
		for _, p := range problems {
			if p.Message == "" {
				t.Errorf("a problem without a message: %+v", p)
			}
		}
		if len(problems) > 0 {
			return
		}
		again, problems := Parse(Format(c), tasks)
		if len(problems) > 0 || !reflect.DeepEqual(c, again) {
			t.Errorf("not the same after Format: %+v\n%s", problems, Format(c))
		}
	})
}
