package web

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strings"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/runfile"
	"agentrl/internal/store"
)

func (s *Server) apiRunRoutes() []route {
	const runs = "/api/v1/runs"
	return []route{
		{Method: "GET", Path: runs, Min: viewer, Handler: s.apiRuns},
		{Method: "POST", Path: runs, Min: researcher, Handler: s.apiCreateRun},
		{Method: "POST", Path: runs + "/validate", Min: viewer, Handler: s.apiValidate},
		{Method: "GET", Path: runs + "/:id", Min: viewer, Handler: s.apiRun},
		{Method: "POST", Path: runs + "/:id/stop", Min: researcher, Handler: s.apiSignal("stop")},
		{Method: "POST", Path: runs + "/:id/cancel", Min: researcher, Handler: s.apiSignal("cancel")},
		{Method: "POST", Path: runs + "/:id/resume", Min: researcher, Handler: s.apiResume},
		{Method: "POST", Path: runs + "/:id/fork", Min: researcher, Handler: s.apiFork},
		{Method: "GET", Path: "/api/v1/presets", Min: viewer, Handler: s.apiPresets},
	}
}

// runSorts are the orders that the runs list knows; "-" in front turns each round.
var runSorts = [...]string{"id", "name", "state", "step", "reward", "pass", "eval", "created", "updated"}

// runFilter reads the query of the runs list, for API and page alike.
func (r *request) runFilter() (store.RunFilter, error) {
	f := store.RunFilter{Search: r.Query("search"), Cursor: r.Query("cursor"), Sort: r.Query("sort")}
	if len(f.Search) > 200 {
		return f, errs.Field("search", "is too long; at most 200 bytes are allowed")
	}
	if len(f.Cursor) > 400 {
		return f, errs.Field("cursor", "is not a cursor of this list; leave it out to begin at the first page")
	}
	var err error
	if f.Limit, err = r.Limit(); err != nil {
		return f, err
	}
	if f.ExperimentID, err = r.QueryInt("experiment", 0, 1, 1<<62); err != nil {
		return f, err
	}
	if name := strings.TrimPrefix(f.Sort, "-"); f.Sort != "" && !slices.Contains(runSorts[:], name) {
		return f, errs.Field("sort", "%q is not known; allowed are %s, with - in front for descending", clip(f.Sort, 40), strings.Join(runSorts[:], ", "))
	}
	for _, v := range splitList(r.Query("state")) {
		st := experiment.State(v)
		if !slices.Contains(experiment.States(), st) {
			return f, errs.Field("state", "%q is not a state; allowed are %v", clip(v, 40), experiment.States())
		}
		f.States = append(f.States, st)
	}
	return f, nil
}

func (s *Server) apiRuns(r *request) error {
	f, err := r.runFilter()
	if err != nil {
		return err
	}
	p, err := s.store.ListRuns(r.Context(), f)
	if err != nil {
		return err
	}
	return answerList(r, p.Runs, p.Next, &p.Total)
}

// runDetail is one run with its frozen configuration.
type runDetail struct {
	experiment.Run
	Config experiment.Config `json:"config"`
}

func (s *Server) answerRun(r *request, status int, id int64) error {
	run, err := s.store.Run(r.Context(), id)
	if err != nil {
		return err
	}
	return r.JSON(status, runDetail{run, run.Config})
}

func (s *Server) apiRun(r *request) error {
	id, err := r.ID("id")
	if err != nil {
		return err
	}
	return s.answerRun(r, http.StatusOK, id)
}

// runInput is the JSON body that creates or forks a run. Exactly one of YAML and Config holds the run file.
type runInput struct {
	Experiment   string          `json:"experiment"`
	ExperimentID int64           `json:"experiment_id"`
	YAML         string          `json:"yaml"`
	Config       json.RawMessage `json:"config"`
}

// readRunInput takes JSON, or a bare YAML run file with the experiment in the query.
func (r *request) readRunInput() (runInput, error) {
	var in runInput
	ct, _, _ := mime.ParseMediaType(r.c.Request().Header.Get("Content-Type"))
	switch ct {
	case "application/yaml", "application/x-yaml", "text/yaml":
		b, err := r.Body()
		if err != nil {
			return in, err
		}
		in.YAML, in.Experiment = string(b), r.Query("experiment")
		return in, nil
	}
	return in, r.Decode(&in)
}

// yaml is the run file's text. A JSON configuration is YAML as it stands and is checked as such.
func (in *runInput) yaml() ([]byte, bool, error) {
	conf := bytes.TrimSpace(in.Config)
	isConfig := len(conf) > 0 && !bytes.Equal(conf, []byte("null"))
	switch {
	case isConfig && in.YAML != "":
		return nil, false, errs.Field("config", "give either yaml or config, not both")
	case isConfig:
		return conf, true, nil
	case in.YAML != "":
		return []byte(in.YAML), false, nil
	}
	return nil, false, errs.Field("yaml", "is missing; give the run file as yaml (text) or config (object)")
}

// resolve gives the text to store: what the user wrote in YAML, or the complete file of a JSON configuration.
func (s *Server) resolve(r *request, in runInput) ([]byte, error) {
	src, isJSON, err := in.yaml()
	if err != nil || !isJSON {
		return src, err
	}
	conf, problems := runfile.Parse(src, s.taskNames(r.Context()))
	if err := refused(problems); err != nil {
		return nil, err
	}
	return runfile.Format(conf), nil
}

func (s *Server) apiCreateRun(r *request) error {
	in, err := r.readRunInput()
	if err != nil {
		return err
	}
	src, err := s.resolve(r, in)
	if err != nil {
		return err
	}
	run, problems, err := s.createRun(r, newRun{ExperimentID: in.ExperimentID, Experiment: in.Experiment, YAML: src})
	if err == nil {
		err = refused(problems)
	}
	if err != nil {
		return err
	}
	return s.answerRun(r, http.StatusCreated, run.ID)
}

// validated is the answer of a check: the complete configuration, or what is wrong.
type validated struct {
	OK       bool               `json:"ok"`
	Problems []runfile.Problem  `json:"problems"`
	Config   *experiment.Config `json:"config,omitempty"`
	YAML     string             `json:"yaml,omitempty"`
}

func (s *Server) apiValidate(r *request) error {
	in, err := r.readRunInput()
	if err != nil {
		return err
	}
	src, _, err := in.yaml()
	if err != nil {
		return err
	}
	conf, problems := runfile.Parse(src, s.taskNames(r.Context()))
	if len(problems) > 0 {
		return r.JSON(http.StatusOK, validated{Problems: problems})
	}
	return r.JSON(http.StatusOK, validated{true, []runfile.Problem{}, &conf, string(runfile.Format(conf))})
}

func (s *Server) apiSignal(sig experiment.Signal) handler {
	return func(r *request) error {
		id, err := r.ID("id")
		if err != nil {
			return err
		}
		if err := s.signalRun(r, id, sig); err != nil {
			return err
		}
		return s.answerRun(r, http.StatusOK, id)
	}
}

func (s *Server) apiResume(r *request) error {
	id, err := r.ID("id")
	if err != nil {
		return err
	}
	if err := s.resumeRun(r, id); err != nil {
		return err
	}
	return s.answerRun(r, http.StatusOK, id)
}

// forkInput changes a run's configuration for its fork; what is left out stays as it was.
type forkInput struct {
	Experiment   string          `json:"experiment"`
	ExperimentID int64           `json:"experiment_id"`
	Name         string          `json:"name"`
	Seed         *uint64         `json:"seed"`
	YAML         string          `json:"yaml"`
	Config       json.RawMessage `json:"config"`
}

func (s *Server) apiFork(r *request) error {
	id, err := r.ID("id")
	if err != nil {
		return err
	}
	var in forkInput
	if err := r.Decode(&in); err != nil {
		return err
	}
	parent, err := s.store.Run(r.Context(), id)
	if err != nil {
		return err
	}
	ri := runInput{YAML: in.YAML, Config: in.Config}
	if in.YAML == "" && len(in.Config) == 0 {
		ri.YAML = parent.ConfigYAML
	}
	src, err := s.resolve(r, ri)
	if err != nil {
		return err
	}
	if in.Name != "" || in.Seed != nil {
		conf, problems := runfile.Parse(src, s.taskNames(r.Context()))
		if err := refused(problems); err != nil {
			return err
		}
		if in.Name != "" {
			conf.Name = in.Name
		}
		if in.Seed != nil {
			conf.Seed = *in.Seed
		}
		src = runfile.Format(conf)
	}
	n := newRun{ExperimentID: in.ExperimentID, Experiment: in.Experiment, YAML: src, ForkedFrom: id}
	if n.ExperimentID == 0 && n.Experiment == "" {
		n.ExperimentID = parent.ExperimentID
	}
	run, problems, err := s.createRun(r, n)
	if err == nil {
		err = refused(problems)
	}
	if err != nil {
		return err
	}
	return s.answerRun(r, http.StatusCreated, run.ID)
}

// presetText is a preset with its run file.
type presetText struct {
	runfile.PresetInfo
	YAML string `json:"yaml"`
}

func (s *Server) apiPresets(r *request) error {
	var out []presetText
	for _, p := range runfile.Presets() {
		d, err := s.preset(p.Name)
		if err != nil {
			return err
		}
		out = append(out, presetText{p, d.text})
	}
	return answerList(r, out, "", nil)
}
