package web

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"agentrl/internal/errs"
	"agentrl/internal/store"
	"agentrl/internal/trajectory"
	"agentrl/templates"
)

// rolloutsPage lists trajectories that have ended.
func (s *Server) rolloutsPage(r *request) error {
	v, err := s.runView(r, "rollouts")
	if err != nil {
		return err
	}
	f := store.TrajectoryFilter{RunID: v.Run.ID, Phase: r.Query("phase"), Task: r.Query("task"), EndState: r.Query("end"), Limit: listPerPage}
	if f.Phase != "" && f.Phase != "rl" && f.Phase != "eval" {
		return errs.Field("phase", "must be rl or eval, not %q", clip(f.Phase, 40))
	}
	if f.EndState != "" && !slices.Contains(trajectory.EndStates(), trajectory.EndState(f.EndState)) {
		return errs.Field("end", "%q is not an end state", clip(f.EndState, 40))
	}
	if f.Step, err = r.QueryInt("step", -1, -1, 1<<62); err != nil {
		return err
	}
	if f.Draw, err = r.QueryInt("draw", -1, -1, 1<<62); err != nil {
		return err
	}
	switch p := r.Query("pass"); p {
	case "":
	case "yes", "no":
		b := p == "yes"
		f.Pass = &b
	default:
		return errs.Field("pass", "must be yes or no, not %q", clip(p, 40))
	}
	pg, err := r.QueryInt("page", 1, 1, 1<<30)
	if err != nil {
		return err
	}
	f.Offset = int(pg-1) * f.Limit
	list, total, err := s.store.Trajectories(r.Context(), f)
	if err != nil {
		return err
	}
	prev, next := pageLinks(r, pg, f.Offset+len(list), total)
	tasks := append(taskList(v.Run.Config), v.Run.Config.Eval.Tasks...)
	slices.Sort(tasks)
	return r.Render(http.StatusOK, templates.RolloutsPage(s.runFrame(r, v), templates.RolloutsView{
		RunView: v, List: list, Total: total, From: f.Offset, Prev: prev, Next: next, Phase: f.Phase, Task: f.Task,
		End: f.EndState, Pass: r.Query("pass"), Step: r.Query("step"), Draw: r.Query("draw"), Tasks: slices.Compact(tasks),
	}))
}

// groupsPage lists prompt groups.
func (s *Server) groupsPage(r *request) error {
	v, err := s.runView(r, "groups")
	if err != nil {
		return err
	}
	f := store.GroupFilter{RunID: v.Run.ID, Task: r.Query("task"), Sort: r.Query("sort"), Limit: listPerPage}
	if f.Sort == "" {
		f.Sort = "-step"
	}
	if !slices.Contains([]string{"step", "spread", "mean", "age", "passes"}, strings.TrimPrefix(f.Sort, "-")) {
		return errs.Field("sort", "%q is not a column to sort by; step, spread, mean, age and passes are", clip(f.Sort, 40))
	}
	if f.Step, err = r.QueryInt("step", -1, -1, 1<<62); err != nil {
		return err
	}
	pg, err := r.QueryInt("page", 1, 1, 1<<30)
	if err != nil {
		return err
	}
	f.Offset = int(pg-1) * f.Limit
	list, total, err := s.store.Groups(r.Context(), f)
	if err != nil {
		return err
	}
	prev, next := pageLinks(r, pg, f.Offset+len(list), total)
	return r.Render(http.StatusOK, templates.GroupsPage(s.runFrame(r, v), templates.GroupsView{
		RunView: v, List: list, Total: total, From: f.Offset, Prev: prev, Next: next, Sort: f.Sort, Task: f.Task,
		Step: r.Query("step"), Tasks: taskList(v.Run.Config),
		SortLink: func(key string) string { return sortLink(r.Request().URL, key, f.Sort) },
	}))
}

// pageLinks are the addresses of the pages before and after; empty where there is none.
func pageLinks(r *request, pg int64, end int, total int64) (prev, next string) {
	u := r.Request().URL
	if pg > 1 {
		prev = withQuery(u, "page", strconv.FormatInt(pg-1, 10))
	}
	if int64(end) < total {
		next = withQuery(u, "page", strconv.FormatInt(pg+1, 10))
	}
	return prev, next
}
