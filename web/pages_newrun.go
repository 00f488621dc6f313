package web

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"

	"agentrl/internal/errs"
	"agentrl/internal/runfile"
	"agentrl/templates"
)

// draftField is one field of the form and the key it edits.
type draftField struct {
	Path, Label, Hint string
	Options           []string
	Wide              bool
}

type draftSection struct {
	Title, Extra string
	Fields       []draftField
}

// Paths of the fields that edit the pool as a whole.
const (
	poolMode    = "policy.pool.mode"
	poolStale   = "pool:stale"
	poolRefresh = "pool:refresh"
	mixPrefix   = "mix:"
)

// draftForm is the form: the main keys; the file has the rest.
func draftForm() []draftSection {
	yes := []string{"true", "false"}
	return []draftSection{
		{Title: "Run", Fields: []draftField{
			{Path: "name", Label: "Name"},
			{Path: "seed", Label: "Seed", Hint: "fixes weights, data and sampling"},
			{Path: "budget.steps", Label: "Steps", Hint: "0 is no bound"},
			{Path: "budget.wall_time", Label: "Wall time", Hint: "such as 20m; 0s is no bound"},
			{Path: "worker.queue", Label: "Queue", Hint: "label of the workers"},
		}},
		{Title: "Task mix", Extra: "mix", Fields: []draftField{
			{Path: "env.alfworld.level", Label: "ALFWorld level", Hint: "0 to 4"},
			{Path: "env.alfworld.list_actions", Label: "List the commands", Options: yes},
		}},
		{Title: "Model and policy pool", Extra: "pool", Fields: []draftField{
			{Path: "policy.base", Label: "Model", Hint: "pico, nano, micro, mini or a folder"},
			{Path: poolMode, Label: "Pool mode", Options: []string{"single", "mix", "cross"}},
			{Path: poolStale, Label: "Stale weight", Hint: "probability of a draw"},
			{Path: poolRefresh, Label: "Refresh every", Hint: "updates"},
		}},
		{Title: "Warm start", Fields: []draftField{
			{Path: "warmup.demonstrations", Label: "Demonstrations", Hint: "expert episodes; 0 skips it"},
			{Path: "warmup.expert", Label: "Expert", Options: []string{"searching", "privileged"}},
			{Path: "warmup.epochs", Label: "Epochs"},
			{Path: "warmup.learning_rate", Label: "Learning rate"},
		}},
		{Title: "Reinforcement learning", Fields: []draftField{
			{Path: "algorithm.group_size", Label: "Group size", Hint: "at least 2"},
			{Path: "pipeline.batch_prompts", Label: "Groups in a batch"},
			{Path: "algorithm.learning_rate", Label: "Learning rate"},
			{Path: "algorithm.kl.coef", Label: "KL coefficient"},
			{Path: "algorithm.task_advantage_norm", Label: "Normalise per task", Options: yes},
			{Path: "algorithm.dynamic_sampling", Label: "Dynamic sampling", Options: yes},
		}},
		{Title: "Rollouts", Fields: []draftField{
			{Path: "sampling.temperature", Label: "Temperature"},
			{Path: "sampling.max_turns", Label: "Turns at most"},
			{Path: "sampling.max_new_tokens", Label: "Tokens a turn"},
			{Path: "sampling.max_total_tokens", Label: "Tokens an episode"},
			{Path: "pipeline.mode", Label: "Pipeline", Options: []string{"async", "sync"}},
			{Path: "pipeline.concurrency", Label: "Episodes in flight"},
			{Path: "pipeline.max_staleness", Label: "Staleness at most", Hint: "updates"},
			{Path: "sampling.constrained", Label: "Constrained decoding", Options: yes},
		}},
		{Title: "Evaluation and checkpoints", Fields: []draftField{
			{Path: "eval.every", Label: "Evaluate every", Hint: "updates"},
			{Path: "eval.samples", Label: "Samples"},
			{Path: "eval.attempts", Label: "Attempts"},
			{Path: "checkpoint.every", Label: "Checkpoint every", Hint: "updates"},
		}},
	}
}

// draftValues reads all fields from a file; keys that it leaves out show their defaults.
func draftValues(d, defaults draft, tasks []string) map[string]string {
	out := map[string]string{}
	for _, sec := range draftForm() {
		for _, f := range sec.Fields {
			v, ok := d.value(f.Path)
			if !ok {
				v, _ = defaults.value(f.Path)
			}
			out[f.Path] = v
		}
	}
	src := d
	if src.depth([]string{"policy", "pool"}) < 2 {
		src = defaults
	}
	out[poolMode], out[poolStale], out[poolRefresh] = src.pool()
	mix := d.mix()
	for _, t := range tasks {
		out[mixPrefix+t] = mix[t]
	}
	return out
}

// mixTasks are the tasks that the form offers: those that can be played and are not validation splits, and whatever
// the file names.
func mixTasks(known []string, d draft) []string {
	var out []string
	for _, t := range known {
		if !strings.HasSuffix(t, "-valid") && !strings.HasSuffix(t, "-test") {
			out = append(out, t)
		}
	}
	for t := range d.mix() {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	sort.Strings(out)
	return out
}

// edit writes one changed field into the file.
func (s *Server) edit(ctx context.Context, d draft, path, value string, tasks []string) (draft, error) {
	value = strings.TrimSpace(value)
	switch {
	case path == "preset":
		return s.preset(value)
	case path == "saved:mix" || path == "saved:pool":
		return s.takeSaved(ctx, d, strings.TrimPrefix(path, "saved:"), value)
	case strings.HasPrefix(path, mixPrefix):
		name := strings.TrimPrefix(path, mixPrefix)
		if !slices.Contains(tasks, name) {
			return d, errs.Field("tasks", "there is no task %q", clip(name, 60))
		}
		mix := d.mix()
		mix[name] = value
		return d.set("tasks", mixYAML(tasks, mix))
	case path == poolMode || path == poolStale || path == poolRefresh:
		mode, stale, refresh := d.pool()
		switch path {
		case poolMode:
			mode = value
		case poolStale:
			stale = value
		case poolRefresh:
			refresh = value
		}
		if mode != "single" && stale == "" {
			stale, refresh = "0.25", "25"
		}
		if refresh == "" {
			refresh = "25"
		}
		return d.set("policy.pool", poolYAML(mode, stale, refresh))
	}
	for _, sec := range draftForm() {
		for _, f := range sec.Fields {
			if f.Path == path {
				return d.set(path, scalarYAML(value))
			}
		}
	}
	return d, errs.Field(clip(path, 60), "is not a field of this form")
}

// takeSaved writes a saved mix or pool into the file.
func (s *Server) takeSaved(ctx context.Context, d draft, kind, id string) (draft, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return d, errs.Field("saved:"+kind, "choose one of the list")
	}
	o, err := s.store.Object(ctx, n)
	if err != nil {
		return d, err
	}
	if o.Kind != kind {
		return d, errs.Field("saved:"+kind, "that saved object is a %s", o.Kind)
	}
	if kind == "mix" {
		return d.set("tasks", strings.TrimSpace(o.Body))
	}
	return d.set("policy.pool", strings.TrimSpace(o.Body))
}

// draftAnswer is what the form learns after each change.
type draftAnswer struct {
	YAML     string            `json:"yaml"`
	Values   map[string]string `json:"values"`
	Problems []runfile.Problem `json:"problems"`
	Changed  bool              `json:"changed"` // the text differs from what was sent
}

// draftAPI writes a changed field into the file, if one is named, and says what is wrong with the file.
func (s *Server) draftAPI(r *request) error {
	f, err := r.Form()
	if err != nil {
		return err
	}
	text := f.Raw("yaml")
	d := newDraft(text)
	known := s.taskNames(r.Context())
	tasks := mixTasks(known, d)
	if path := f.Raw("path"); path != "" {
		if d, err = s.edit(r.Context(), d, path, f.Raw("value"), tasks); err != nil {
			return err
		}
	}
	_, problems := runfile.Parse([]byte(d.text), known)
	if problems == nil {
		problems = []runfile.Problem{}
	}
	return r.JSON(http.StatusOK, draftAnswer{YAML: d.text, Values: draftValues(d, defaultsDraft(), mixTasks(known, d)), Problems: problems, Changed: d.text != text})
}

// newRunPage begins with the quickstart preset, another preset, or the file of the run that is forked.
func (s *Server) newRunPage(r *request) error {
	v := templates.NewRunView{Preset: r.Query("preset"), Experiment: r.Query("experiment")}
	fork, err := r.QueryInt("fork", 0, 1, 1<<62)
	if err != nil {
		return err
	}
	if fork != 0 {
		run, err := s.store.Run(r.Context(), fork)
		if err != nil {
			return err
		}
		v.ForkedFrom, v.Fork, v.Experiment = run.ID, run.Name, run.Experiment
		d := newDraft(run.ConfigYAML)
		if named, err := d.set("name", scalarYAML(clip(run.Name, 100)+"-fork")); err == nil {
			d = named
		}
		return s.renderNewRun(r, http.StatusOK, v, d, nil)
	}
	if v.Preset == "" {
		v.Preset = "quickstart"
	}
	d, err := s.preset(v.Preset)
	if err != nil {
		return err
	}
	return s.renderNewRun(r, http.StatusOK, v, d, nil)
}

// renderNewRun fills the form from the file. failed carries errors of fields beyond the file's own problems.
func (s *Server) renderNewRun(r *request, status int, v templates.NewRunView, d draft, failed map[string]string) error {
	ctx := r.Context()
	var err error
	if v.Experiments, err = s.store.Experiments(ctx); err != nil {
		return err
	}
	if v.Mixes, err = s.store.Objects(ctx, "mix"); err != nil {
		return err
	}
	if v.Pools, err = s.store.Objects(ctx, "pool"); err != nil {
		return err
	}
	known := s.taskNames(ctx)
	tasks := mixTasks(known, d)
	values := draftValues(d, defaultsDraft(), tasks)
	_, problems := runfile.Parse([]byte(d.text), known)
	errors := map[string]string{}
	for k, m := range failed {
		errors[k] = m
		v.Problems = append(v.Problems, templates.DraftProblem{Path: k, Message: m})
	}
	for _, q := range problems {
		v.Problems = append(v.Problems, templates.DraftProblem{Line: q.Line, Path: q.Path, Message: q.Message})
		if _, ok := errors[q.Path]; !ok {
			errors[q.Path] = q.Message
		}
	}
	for _, p := range runfile.Presets() {
		v.Presets = append(v.Presets, templates.Preset{Name: p.Name, Summary: p.Summary, Needs: p.Needs})
	}
	for _, sec := range draftForm() {
		out := templates.DraftSection{Title: sec.Title, Extra: sec.Extra}
		for _, f := range sec.Fields {
			fd := templates.Field{Name: f.Path, Label: f.Label, Hint: f.Hint, Value: values[f.Path], Error: errors[f.Path]}
			if len(f.Options) > 0 {
				fd.Type = "select"
				if !slices.Contains(f.Options, fd.Value) {
					fd.Options = append(fd.Options, templates.Option{Value: fd.Value, Text: fd.Value})
				}
				for _, o := range f.Options {
					fd.Options = append(fd.Options, templates.Option{Value: o, Text: optionText(o)})
				}
			}
			out.Fields = append(out.Fields, fd)
		}
		v.Sections = append(v.Sections, out)
	}
	for _, t := range tasks {
		v.Mix = append(v.Mix, templates.MixRow{Task: t, Weight: values[mixPrefix+t]})
	}
	was, err := json.Marshal(values)
	if err != nil {
		return err
	}
	v.YAML, v.Was = d.text, string(was)
	p := r.Page("New run", "runs", templates.Crumb{Text: "Runs", Href: "/runs"}, templates.Crumb{Text: "New run"})
	p.Script, p.Wide = "newrun", true
	p.Keys = []templates.Key{{Press: "Ctrl Enter", Does: "queue the run"}}
	return r.Render(status, templates.NewRunPage(p, v))
}

func optionText(o string) string {
	switch o {
	case "true":
		return "yes"
	case "false":
		return "no"
	}
	return o
}

// postRun queues the run that the file describes, or answers the buttons that do without JavaScript.
func (s *Server) postRun(r *request) error {
	f, err := r.Form()
	if err != nil {
		return err
	}
	v := templates.NewRunView{Preset: f.Text("preset"), Experiment: f.Text("experiment")}
	if f.Text("forked_from") != "" {
		v.ForkedFrom = f.Int("forked_from", 0, 1, 1<<62)
		run, err := s.store.Run(r.Context(), v.ForkedFrom)
		if err != nil {
			return err
		}
		v.Fork = run.Name
	}
	d := newDraft(f.Raw("yaml"))
	switch f.Text("do") {
	case "preset":
		return r.Redirect("/runs/new?preset=" + v.Preset)
	case "apply":
		d, failed := s.applyChanged(r, f, d)
		return s.renderNewRun(r, http.StatusOK, v, d, failed)
	case "check":
		return s.renderNewRun(r, http.StatusOK, v, d, nil)
	}
	run, problems, err := s.createRun(r, newRun{Experiment: v.Experiment, YAML: []byte(d.text), ForkedFrom: v.ForkedFrom})
	switch {
	case len(problems) > 0:
		return s.renderNewRun(r, http.StatusUnprocessableEntity, v, d, nil)
	case err != nil:
		if !f.FailErr(err) {
			return err
		}
		return s.renderNewRun(r, http.StatusUnprocessableEntity, v, d, f.Errors)
	}
	return r.RedirectWith("/runs/"+strconv.FormatInt(run.ID, 10), "good", "The run is queued. It starts as soon as a worker of queue “"+run.Queue+"” is free.")
}

// applyChanged writes the fields that differ from what the form was filled with into the file.
func (s *Server) applyChanged(r *request, f *formData, d draft) (draft, map[string]string) {
	was := map[string]string{}
	_ = json.Unmarshal([]byte(f.Raw("was")), &was) // unreadable: every field counts as changed
	tasks := mixTasks(s.taskNames(r.Context()), d)
	paths := make([]string, 0, len(was)+2)
	for path := range was {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	paths = append(paths, "saved:mix", "saved:pool")
	failed := map[string]string{}
	for _, path := range paths {
		v, posted := f.Values[path]
		if !posted || strings.TrimSpace(v[0]) == was[path] {
			continue
		}
		next, err := s.edit(r.Context(), d, path, v[0], tasks)
		if err != nil {
			failed[path] = showable(err).Message
			continue
		}
		d = next
	}
	return d, failed
}
