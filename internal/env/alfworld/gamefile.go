package alfworld

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"strings"

	"agentrl/internal/errs"
)

// File is the content of a game file (env-alfworld.md 2.1). Other keys of the file are ignored.
type File struct {
	Domain      string   `json:"pddl_domain"`
	Grammar     string   `json:"grammar"`
	Problem     string   `json:"pddl_problem"`
	Solvable    bool     `json:"solvable"`
	Walkthrough []string `json:"walkthrough"`
}

// ReadFile reads a .tw-pddl or .tw-pddl.gz file.
func ReadFile(path string) (*File, error) {
	// Opening a pipe would wait for its writer for ever.
	if fi, err := os.Stat(path); err == nil && !fi.Mode().IsRegular() {
		return nil, errs.New(errs.Invalid, "the game file %q is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, errs.Wrap(errs.NotFound, err, "the game file %q cannot be opened", path)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "the game file %q is not compressed with gzip", path)
		}
		r = z
	}
	b, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the game file %q is cut off or damaged", path)
	}
	return ParseFile(b)
}

// ParseFile reads the JSON of a game file. A missing key, a wrong type or a size beyond the limits is an Invalid error.
func ParseFile(b []byte) (*File, error) {
	if len(b) > maxFileBytes {
		return nil, bad("the game file has more than %d bytes", maxFileBytes)
	}
	if d := jsonDepth(string(b)); d > maxDepth {
		return nil, bad("the JSON of the game file is nested deeper than %d", maxDepth)
	}
	var raw struct {
		Domain      *string   `json:"pddl_domain"`
		Grammar     *string   `json:"grammar"`
		Problem     *string   `json:"pddl_problem"`
		Solvable    *bool     `json:"solvable"`
		Walkthrough *[]string `json:"walkthrough"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "the game file is not the JSON object of a game: %v", err)
	}
	for _, k := range []struct {
		name    string
		missing bool
	}{{"pddl_domain", raw.Domain == nil}, {"grammar", raw.Grammar == nil}, {"pddl_problem", raw.Problem == nil},
		{"solvable", raw.Solvable == nil}, {"walkthrough", raw.Walkthrough == nil}} {
		if k.missing {
			return nil, errs.Field(k.name, "this key of the game file is missing")
		}
	}
	if len(*raw.Walkthrough) > maxWalkthrough {
		return nil, errs.Field("walkthrough", "there are %d commands; allowed are %d", len(*raw.Walkthrough), maxWalkthrough)
	}
	return &File{*raw.Domain, *raw.Grammar, *raw.Problem, *raw.Solvable, *raw.Walkthrough}, nil
}

// Load makes a file playable in the given wording.
func (l *Library) Load(f *File, wording string) (*Game, error) {
	if wording != Current && wording != Legacy {
		return nil, errs.Field("wording", "%q is unknown; allowed are %s and %s", wording, Current, Legacy)
	}
	r, goal, err := l.load(f.Domain, f.Grammar, wording)
	if err != nil {
		return nil, err
	}
	p, err := parseProblem(f.Problem)
	if err != nil {
		return nil, err
	}
	g, err := newGame(r, p, goal)
	if err != nil {
		return nil, err
	}
	for _, c := range f.Walkthrough {
		g.Walkthrough = append(g.Walkthrough, translateCommand(c, wording))
	}
	return g, nil
}
