package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/store"
	"agentrl/templates"
)

const runsPerPage = 200

// runColumns are the columns that can be chosen, in order; on are the ones shown until the user chooses.
func runColumns() []templates.RunColumn {
	return []templates.RunColumn{
		{Key: "experiment", Label: "Experiment", On: true, Minor: true},
		{Key: "progress", Label: "Progress", On: true, Minor: true},
		{Key: "pass", Label: "Pass rate", On: true, Num: true, Sort: "pass"},
		{Key: "eval", Label: "Evaluation", On: true, Num: true, Minor: true, Sort: "eval"},
		{Key: "reward", Label: "Reward", On: true, Num: true, Minor: true, Sort: "reward"},
		{Key: "trajectories", Label: "Trajectories", On: true, Num: true, Minor: true},
		{Key: "tokens", Label: "Tokens", Num: true, Minor: true},
		{Key: "seed", Label: "Seed", On: true, Num: true, Minor: true},
		{Key: "attempt", Label: "Attempt", Num: true, Minor: true},
		{Key: "id", Label: "Id", Num: true, Minor: true, Sort: "id"},
		{Key: "created", Label: "Created", On: true, Num: true, Minor: true, Sort: "created"},
		{Key: "updated", Label: "Updated", Num: true, Minor: true, Sort: "updated"},
	}
}

// chosenColumns takes the columns from the address, else from the user's preferences. A choice in the address is kept
// for the user.
func (s *Server) chosenColumns(r *request) []templates.RunColumn {
	cols := runColumns()
	chosen := r.Request().URL.Query()["col"]
	fromPrefs := len(chosen) == 0
	if fromPrefs {
		chosen = prefs(r.user.Prefs).RunColumns
	}
	if len(chosen) == 0 {
		return cols
	}
	for i := range cols {
		cols[i].On = slices.Contains(chosen, cols[i].Key)
	}
	return cols
}

// preferences is what a user has arranged; it is kept as JSON with the account.
type preferences struct {
	RunColumns []string `json:"run_columns,omitempty"`
}

func prefs(text string) preferences {
	var p preferences
	_ = json.Unmarshal([]byte(text), &p) // an unreadable preference is none
	return p
}

// runsPage lists runs.
func (s *Server) runsPage(r *request) error {
	ctx := r.Context()
	sort := r.Query("sort")
	if sort == "" {
		sort = "-id"
	}
	if !slices.Contains([]string{"id", "name", "state", "step", "reward", "pass", "eval", "created", "updated"}, strings.TrimPrefix(sort, "-")) {
		return errs.Field("sort", "%q is not a column to sort by", clip(sort, 40))
	}
	ex, err := r.QueryInt("experiment", 0, 1, 1<<62)
	if err != nil {
		return err
	}
	f := store.RunFilter{ExperimentID: ex, Search: clip(r.Query("q"), 200), Sort: sort, Cursor: r.Query("cursor"), Limit: runsPerPage}
	if st := r.Query("state"); st != "" {
		if !slices.Contains(templates.States(), experiment.State(st)) {
			return errs.Field("state", "%q is not a state; allowed are %v", clip(st, 40), templates.States())
		}
		f.States = []experiment.State{experiment.State(st)}
	}
	counts, err := s.store.CountRuns(ctx)
	if err != nil {
		return err
	}
	experiments, err := s.store.Experiments(ctx)
	if err != nil {
		return err
	}
	list, err := s.store.ListRuns(ctx, f)
	if err != nil {
		return err
	}
	v := templates.RunsView{
		Now: s.clock(), Runs: list.Runs, Total: list.Total, Counts: counts, Search: f.Search, State: r.Query("state"),
		Experiment: ex, Experiments: experiments, Sort: sort, Columns: s.chosenColumns(r),
		SortLink: func(key string) string { return sortLink(r.Request().URL, key, sort) },
	}
	for _, n := range counts {
		v.All += n
	}
	if f.Cursor != "" {
		v.First = withQuery(r.Request().URL, "cursor", "")
	}
	if list.Next != "" {
		v.Next = withQuery(r.Request().URL, "cursor", list.Next)
	}
	crumbs := []templates.Crumb{{Text: "Runs"}}
	for _, e := range experiments {
		if e.ID == ex {
			crumbs = []templates.Crumb{{Text: "Experiments", Href: "/experiments"}, {Text: e.Name}}
		}
	}
	p := r.Page("Runs", "runs", crumbs...)
	p.Wide, p.Script, p.Topics = true, "runs", []string{"runs"}
	p.Keys = []templates.Key{{Press: "j / k", Does: "next and previous run"}, {Press: "Enter", Does: "open the run"}, {Press: "n", Does: "new run"}}
	s.keepColumns(r)
	return r.Render(http.StatusOK, templates.RunsPage(p, v))
}

// keepColumns remembers the columns of the address for the user. Failing to costs a convenience only.
func (s *Server) keepColumns(r *request) {
	chosen := r.Request().URL.Query()["col"]
	if len(chosen) == 0 || r.user.ID == 0 {
		return
	}
	var known []string
	for _, c := range runColumns() {
		if slices.Contains(chosen, c.Key) {
			known = append(known, c.Key)
		}
	}
	if slices.Equal(known, prefs(r.user.Prefs).RunColumns) {
		return
	}
	all := map[string]any{}
	_ = json.Unmarshal([]byte(r.user.Prefs), &all)
	all["run_columns"] = known
	b, err := json.Marshal(all)
	if err != nil {
		return
	}
	u := r.user
	u.Prefs = string(b)
	if err := s.store.UpdateUser(r.Context(), u); err != nil {
		s.log.Warn("columns were not kept", "user", u.ID, "err", err)
	}
}

// experimentsPage lists experiments.
func (s *Server) experimentsPage(r *request) error {
	return s.renderExperiments(r, http.StatusOK, templates.ExperimentsView{})
}

func (s *Server) renderExperiments(r *request, status int, v templates.ExperimentsView) error {
	list, err := s.store.Experiments(r.Context())
	if err != nil {
		return err
	}
	v.Now, v.Experiments = s.clock(), list
	return r.Render(status, templates.ExperimentsPage(r.Page("Experiments", "experiments", templates.Crumb{Text: "Experiments"}), v))
}

// postExperiment makes an experiment.
func (s *Server) postExperiment(r *request) error {
	f, err := r.Form()
	if err != nil {
		return err
	}
	v := templates.ExperimentsView{Name: f.Text("name"), Description: f.Text("description")}
	ex, err := s.createExperiment(r, v.Name, v.Description)
	if err != nil {
		if e, ok := safe(err); ok && e.Field == "" && e.Code == errs.Conflict {
			e.Field = "name"
		}
		if !f.FailErr(err) {
			return err
		}
		v.Errors = f.Errors
		return s.renderExperiments(r, http.StatusUnprocessableEntity, v)
	}
	return r.RedirectWith("/runs?experiment="+strconv.FormatInt(ex.ID, 10), "good", "Experiment “"+ex.Name+"” is ready for runs.")
}

// withQuery is the address with one parameter set, or removed when empty.
func withQuery(u *url.URL, key, value string) string {
	q := u.Query()
	q.Del(key)
	if value != "" {
		q.Set(key, value)
	}
	if len(q) == 0 {
		return u.Path
	}
	return u.Path + "?" + q.Encode()
}

// sortLink sorts by a column, descending first, and the other way when it is the present one. It leads to page one.
func sortLink(u *url.URL, key, current string) string {
	next := "-" + key
	if current == next {
		next = key
	}
	q := u.Query()
	q.Del("cursor")
	q.Del("page")
	q.Set("sort", next)
	return u.Path + "?" + q.Encode()
}
