package web

import (
	"net/http"

	"agentrl/internal/env"
	"agentrl/internal/errs"
)

func (s *Server) apiSavedRoutes() []route {
	var out []route
	for _, kind := range []string{kindMix, kindPool} {
		base := "/api/v1/mixes"
		if kind == kindPool {
			base = "/api/v1/pools"
		}
		out = append(out,
			route{Method: "GET", Path: base, Min: viewer, Handler: s.apiObjects(kind)},
			route{Method: "POST", Path: base, Min: researcher, Handler: s.apiSave(kind)},
			route{Method: "GET", Path: base + "/:name/versions", Min: viewer, Handler: s.apiVersions(kind)},
		)
	}
	return append(out,
		route{Method: "GET", Path: "/api/v1/saved/:id", Min: viewer, Handler: s.apiObject},
		route{Method: "POST", Path: "/api/v1/dry-run", Min: viewer, Handler: s.apiDryRun},
	)
}

func (s *Server) apiObjects(kind string) handler {
	return func(r *request) error {
		all, err := s.store.Objects(r.Context(), kind)
		if err != nil {
			return err
		}
		items, next, total, err := window(r, all)
		if err != nil {
			return err
		}
		return answerList(r, items, next, total)
	}
}

func (s *Server) apiSave(kind string) handler {
	return func(r *request) error {
		var in struct {
			Name string `json:"name"`
			Body string `json:"body"`
			Note string `json:"note"`
		}
		if err := r.Decode(&in); err != nil {
			return err
		}
		o, err := s.saveObject(r, kind, in.Name, in.Body, in.Note)
		if err != nil {
			return err
		}
		return r.JSON(http.StatusCreated, o)
	}
}

func (s *Server) apiVersions(kind string) handler {
	return func(r *request) error {
		all, err := s.store.ObjectVersions(r.Context(), kind, r.PathText("name"))
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return errs.New(errs.NotFound, "there is no %s of this name", kind)
		}
		items, next, total, err := window(r, all)
		if err != nil {
			return err
		}
		return answerList(r, items, next, total)
	}
}

func (s *Server) apiObject(r *request) error {
	id, err := r.ID("id")
	if err != nil {
		return err
	}
	o, err := s.store.Object(r.Context(), id)
	if err != nil {
		return err
	}
	return r.JSON(http.StatusOK, o)
}

// dryBody is the JSON body of a dry run: either part may be left out, not both.
type dryBody struct {
	Mix       string `json:"mix"`  // YAML
	Pool      string `json:"pool"` // YAML
	Prompts   int64  `json:"batch_prompts"`
	GroupSize int64  `json:"group_size"`
	Turns     int64  `json:"turns"`
	Seed      uint64 `json:"seed"`
}

func (s *Server) apiDryRun(r *request) error {
	in := dryBody{Prompts: 8, GroupSize: 8, Turns: 10}
	if err := r.Decode(&in); err != nil {
		return err
	}
	out, err := s.dryRun(r, in)
	if err != nil {
		return err
	}
	return r.JSON(http.StatusOK, out)
}

// dryRun checks the texts and sizes and computes the batch, for API and page alike.
func (s *Server) dryRun(r *request, in dryBody) (dryRun, error) {
	for _, b := range []struct {
		name     string
		v, least int64
		most     int64
	}{{"batch_prompts", in.Prompts, 1, 1024}, {"group_size", in.GroupSize, 1, 128}, {"turns", in.Turns, 1, 100}} {
		if b.v < b.least || b.v > b.most {
			return dryRun{}, errs.Field(b.name, "must be from %d to %d, not %d", b.least, b.most, b.v)
		}
	}
	d := dryInput{Prompts: int(in.Prompts), GroupSize: int(in.GroupSize), Turns: int(in.Turns), Seed: in.Seed}
	if in.Mix == "" && in.Pool == "" {
		return dryRun{}, errs.Field("mix", "is missing; give a mix, a pool, or both")
	}
	var err error
	if in.Mix != "" {
		if d.Mix, err = parseMix(in.Mix, s.taskNames(r.Context())); err != nil {
			return dryRun{}, renamed(err, "mix")
		}
	}
	if in.Pool != "" {
		if d.Pool, err = parsePool(in.Pool); err != nil {
			return dryRun{}, renamed(err, "pool")
		}
	}
	var specs []env.Spec
	if s.o.Tasks != nil {
		if specs, err = s.o.Tasks.Specs(r.Context()); err != nil {
			return dryRun{}, errs.Wrap(errs.Unavailable, err, "the tasks cannot be listed now")
		}
	}
	return dry(d, specs)
}

// renamed tells a problem of a body under the name it has in this request.
func renamed(err error, field string) error {
	if e, ok := safe(err); ok {
		c := *e
		c.Field = field
		return &c
	}
	return err
}
