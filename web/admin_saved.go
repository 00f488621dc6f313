package web

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/templates"
)

const savedBody = 256 << 10 // a body of the largest size, form-encoded

func (s *Server) savedRoutes() []route {
	out := []route{
		{Method: "GET", Path: "/saved", Min: viewer, Handler: s.savedPage},
		{Method: "GET", Path: "/saved/new", Min: researcher, Handler: s.newSavedPage},
		{Method: "GET", Path: "/saved/dry-run", Min: viewer, Handler: s.dryPage},
	}
	for _, k := range []string{kindMix, kindPool} {
		out = append(out,
			route{Method: "POST", Path: "/saved/" + k, Min: researcher, Handler: s.postSaved(k), BodyLimit: savedBody},
			route{Method: "POST", Path: "/saved/" + k + "/try", Min: viewer, Handler: s.trySaved(k), BodyLimit: savedBody},
			route{Method: "GET", Path: "/saved/" + k + "/:name", Min: viewer, Handler: s.savedObjectPage(k)},
		)
	}
	return out
}

func (s *Server) savedView(r *request) (templates.SavedView, error) {
	v := templates.SavedView{Now: s.clock()}
	var err error
	if v.Mixes, err = s.store.Objects(r.Context(), kindMix); err != nil {
		return v, err
	}
	v.Pools, err = s.store.Objects(r.Context(), kindPool)
	return v, err
}

func (s *Server) savedPage(r *request) error {
	v, err := s.savedView(r)
	if err != nil {
		return err
	}
	return r.Render(http.StatusOK, templates.SavedPage(r.Page("Mixes and pools", "saved", templates.Crumb{Text: "Mixes and pools"}), v))
}

// showSaved renders the form with its frame.
func (s *Server) showSaved(r *request, status int, v templates.SavedFormView) error {
	v.Now = s.clock()
	title := v.Name
	if !v.Fixed {
		title = "New"
	}
	p := r.Page(title, "saved", templates.Crumb{Text: "Mixes and pools", Href: "/saved"}, templates.Crumb{Text: title})
	return r.Render(status, templates.SavedFormPage(p, v))
}

func (s *Server) newSavedPage(r *request) error {
	v := templates.SavedFormView{Kind: kindMix}
	if r.Query("kind") == kindPool {
		v.Kind = kindPool
	}
	v.Body = s.exampleBody(r, v.Kind)
	return s.showSaved(r, http.StatusOK, v)
}

// exampleBody is a body to begin with: a real task with weight 1, or the usual cross pool.
func (s *Server) exampleBody(r *request, kind string) string {
	if kind == kindPool {
		return "mode: cross\nmembers:\n  - {policy: current, weight: 0.75}\n  - {policy: stale, weight: 0.25, refresh_every: 25}\n"
	}
	task := "alfworld-train"
	if names := s.taskNames(r.Context()); len(names) > 0 && !slices.Contains(names, task) {
		task = names[0]
	}
	return "- {task: " + task + ", weight: 1}\n"
}

// loadSaved fills in the versions of an existing object and who made them.
func (s *Server) loadSaved(r *request, v *templates.SavedFormView) error {
	all, err := s.store.ObjectVersions(r.Context(), v.Kind, v.Name)
	if err != nil && errs.CodeOf(err) != errs.NotFound {
		return err
	}
	v.Versions, v.Fixed, v.Authors = all, len(all) > 0, map[int64]string{}
	for _, o := range all {
		if _, ok := v.Authors[o.AuthorID]; ok || o.AuthorID == 0 {
			continue
		}
		u, err := s.store.UserByID(r.Context(), o.AuthorID)
		if err != nil && errs.CodeOf(err) != errs.NotFound {
			return err
		}
		v.Authors[o.AuthorID] = displayName(u)
	}
	slices.SortFunc(v.Versions, func(a, b experiment.Saved) int { return b.Version - a.Version })
	return nil
}

func (s *Server) savedObjectPage(kind string) handler {
	return func(r *request) error {
		v := templates.SavedFormView{Kind: kind, Name: r.PathText("name")}
		if err := s.loadSaved(r, &v); err != nil {
			return err
		}
		if !v.Fixed {
			return errs.New(errs.NotFound, "there is no %s named %q", kind, clip(v.Name, 80))
		}
		n, err := r.QueryInt("version", int64(v.Versions[0].Version), 1, 1<<31)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(v.Versions, func(o experiment.Saved) bool { return int64(o.Version) == n })
		if i < 0 {
			return errs.New(errs.NotFound, "%q has no version %d", v.Name, n)
		}
		v.Shown = v.Versions[i]
		v.Body = v.Shown.Body
		return s.showSaved(r, http.StatusOK, v)
	}
}

// savedForm reads the posted form.
func (s *Server) savedForm(r *request, kind string) (templates.SavedFormView, *formData, error) {
	f, err := r.Form()
	if err != nil {
		return templates.SavedFormView{}, nil, err
	}
	v := templates.SavedFormView{Kind: kind, Name: f.Text("name"), Body: f.Raw("body"), Note: f.Text("note"), Errors: f.Errors}
	if v.Name != "" && len(v.Name) <= 4*maxSavedName {
		err = s.loadSaved(r, &v)
	}
	return v, f, err
}

func (s *Server) postSaved(kind string) handler {
	return func(r *request) error {
		v, f, err := s.savedForm(r, kind)
		if err != nil {
			return err
		}
		o, err := s.saveObject(r, kind, v.Name, v.Body, v.Note)
		if err == nil {
			return r.RedirectWith("/saved/"+kind+"/"+url.PathEscape(o.Name), "good", "Saved as version "+strconv.Itoa(o.Version)+".")
		}
		if !f.FailErr(err) {
			return err
		}
		return s.showSaved(r, http.StatusBadRequest, v)
	}
}

// trySaved shows what a batch would be made of with the text in the form; nothing is saved.
func (s *Server) trySaved(kind string) handler {
	return func(r *request) error {
		v, f, err := s.savedForm(r, kind)
		if err != nil {
			return err
		}
		in := dryBody{Prompts: 8, GroupSize: 8, Turns: 10, Seed: 7}
		if kind == kindMix {
			in.Mix = v.Body
		} else {
			in.Pool = v.Body
		}
		if v.Body == "" {
			err = errs.Field("body", "is empty")
		} else {
			var d dryRun
			d, err = s.dryRun(r, in)
			if err == nil {
				v.Dry = dryView(d)
				return s.showSaved(r, http.StatusOK, v)
			}
		}
		if !f.FailErr(renamed(err, "body")) {
			return err
		}
		return s.showSaved(r, http.StatusBadRequest, v)
	}
}

func (s *Server) dryPage(r *request) error {
	v, err := s.savedView(r)
	if err != nil {
		return err
	}
	q := func(name, def string) string {
		if x := r.Query(name); x != "" {
			return clip(x, 40)
		}
		return def
	}
	form := templates.DryForm{Mix: q("mix", ""), Pool: q("pool", ""), Prompts: q("batch_prompts", "8"), GroupSize: q("group_size", "8"),
		Turns: q("turns", "10"), Seed: q("seed", "7"), Errors: map[string]string{}}
	status, result := http.StatusOK, (*templates.DryView)(nil)
	if form.Mix != "" || form.Pool != "" {
		d, err := s.drySaved(r, form)
		if e, ok := safe(err); ok && (e.Code == errs.Invalid || e.Code == errs.NotFound) {
			form.Errors[e.Field] = e.Message
			status = http.StatusBadRequest
		} else if err != nil {
			return err
		} else {
			result = dryView(d)
		}
	}
	p := r.Page("Dry run", "saved", templates.Crumb{Text: "Mixes and pools", Href: "/saved"}, templates.Crumb{Text: "Dry run"})
	return r.Render(status, templates.DryPage(p, v, form, result))
}

// drySaved computes the dry run of saved versions.
func (s *Server) drySaved(r *request, f templates.DryForm) (dryRun, error) {
	var in dryBody
	for _, p := range []struct {
		field, id, kind string
		body            *string
	}{{"mix", f.Mix, kindMix, &in.Mix}, {"pool", f.Pool, kindPool, &in.Pool}} {
		if p.id == "" {
			continue
		}
		id, err := parseID(p.id)
		if err != nil {
			return dryRun{}, errs.Field(p.field, "choose one of the list")
		}
		o, err := s.store.Object(r.Context(), id)
		if err != nil {
			return dryRun{}, renamed(err, p.field)
		}
		if o.Kind != p.kind {
			return dryRun{}, errs.Field(p.field, "choose one of the list")
		}
		*p.body = o.Body
	}
	for _, p := range []struct {
		field, text string
		n           *int64
	}{{"batch_prompts", f.Prompts, &in.Prompts}, {"group_size", f.GroupSize, &in.GroupSize}, {"turns", f.Turns, &in.Turns}} {
		n, err := strconv.ParseInt(p.text, 10, 64)
		if err != nil {
			return dryRun{}, errs.Field(p.field, "must be a whole number")
		}
		*p.n = n
	}
	seed, err := strconv.ParseUint(f.Seed, 10, 64)
	if err != nil {
		return dryRun{}, errs.Field("seed", "must be a whole number of at least 0")
	}
	in.Seed = seed
	return s.dryRun(r, in)
}

// dryView turns the result into what the page shows.
func dryView(d dryRun) *templates.DryView {
	v := &templates.DryView{Groups: d.Groups, Trajectories: d.Trajectories, Turns: d.Turns, Mode: d.Mode}
	for _, t := range d.Tasks {
		v.Tasks = append(v.Tasks, templates.DryTask{Task: t.Task, Code: t.Code, Weight: t.Weight, Share: t.Share, Groups: t.Groups,
			Trajectories: t.Trajectories, Batches: t.Batches, Samples: t.Samples, Drawn: t.Drawn})
	}
	for _, m := range d.Policies {
		v.Policies = append(v.Policies, templates.DryPolicy{Policy: m.Policy, Letter: m.Letter, Share: m.Share, Turns: m.Turns, Pure: m.Pure, Drawn: m.Drawn})
	}
	for _, g := range d.Example {
		v.Example = append(v.Example, templates.DryGroup{Number: g.Group, Task: g.Task, Sample: g.Sample, Members: g.Members})
	}
	return v
}
