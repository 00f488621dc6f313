// Package runfile reads and writes the YAML run file and holds the presets.
package runfile

import (
	"agentrl/internal/experiment"
)

// Problem is one thing wrong with a run file. Line and Column count from 1; 0 means that the file does not contain the
// key in question.
type Problem struct {
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Path    string `json:"path"` // dotted, e.g. "tasks[0].weight"; empty for the whole file
	Message string `json:"message"`
}

// MaxBytes is the largest run file that is read.
const MaxBytes = 256 << 10

// Parse reads a run file strictly: defaults for what is left out, a Problem for every unknown key, wrong type and value
// that experiment.Validate refuses. The configuration is usable only without problems. tasks are the names that can be
// played; nil leaves them unchecked.
func Parse(data []byte, tasks []string) (experiment.Config, []Problem) { return parse(data, tasks) }

// Format writes a configuration as a complete run file; Parse reads back the same configuration.
func Format(c experiment.Config) []byte { return format(c) }

// Preset returns the text of a preset.
func Preset(name string) (text []byte, ok bool) { return preset(name) }

// Presets lists the names of the presets, quickstart first.
func Presets() []PresetInfo { return presets() }

// PresetInfo describes a preset.
type PresetInfo struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	Needs   string `json:"needs,omitempty"` // key that must be filled in before it runs, e.g. "env.alfworld.data"
}
