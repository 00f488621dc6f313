package web

import (
	"net/http"

	"agentrl/internal/experiment"
)

func (s *Server) apiExperimentRoutes() []route {
	const base = "/api/v1/experiments"
	return []route{
		{Method: "GET", Path: base, Min: viewer, Handler: s.apiExperiments},
		{Method: "POST", Path: base, Min: researcher, Handler: s.apiCreateExperiment},
		{Method: "GET", Path: base + "/:id", Min: viewer, Handler: s.apiExperiment},
		{Method: "PATCH", Path: base + "/:id", Min: researcher, Handler: s.apiUpdateExperiment},
	}
}

func (s *Server) apiExperiments(r *request) error {
	all, err := s.store.Experiments(r.Context())
	if err != nil {
		return err
	}
	items, next, total, err := window(r, all)
	if err != nil {
		return err
	}
	return answerList(r, items, next, total)
}

type experimentInput struct {
	Name        *string `json:"name"`
	Description *string `json:"description"`
}

func (s *Server) apiCreateExperiment(r *request) error {
	var in experimentInput
	if err := r.Decode(&in); err != nil {
		return err
	}
	ex, err := s.createExperiment(r, deref(in.Name), deref(in.Description))
	if err != nil {
		return err
	}
	return r.JSON(http.StatusCreated, ex)
}

func (s *Server) apiExperiment(r *request) error {
	id, err := r.ID("id")
	if err != nil {
		return err
	}
	ex, err := s.store.Experiment(r.Context(), id)
	if err != nil {
		return err
	}
	return r.JSON(http.StatusOK, ex)
}

func (s *Server) apiUpdateExperiment(r *request) error {
	id, err := r.ID("id")
	if err != nil {
		return err
	}
	var in experimentInput
	if err := r.Decode(&in); err != nil {
		return err
	}
	ex, err := s.store.Experiment(r.Context(), id)
	if err != nil {
		return err
	}
	if ex, err = s.changeExperiment(r, ex, in.Name, in.Description); err != nil {
		return err
	}
	return r.JSON(http.StatusOK, ex)
}

// changeExperiment renames or describes an experiment; nil leaves a text as it is.
func (s *Server) changeExperiment(r *request, ex experiment.Experiment, name, description *string) (experiment.Experiment, error) {
	before := ex
	if name != nil {
		ex.Name = *name
	}
	if description != nil {
		ex.Description = *description
	}
	if err := checkName("name", ex.Name, maxExperimentName); err != nil {
		return before, err
	}
	if err := checkText("description", ex.Description, maxDescription); err != nil {
		return before, err
	}
	if err := s.store.UpdateExperiment(r.Context(), ex); err != nil {
		return before, err
	}
	s.record(r, "experiment.change", experimentObject(ex.ID), map[string]any{"name": before.Name, "description": before.Description},
		map[string]any{"name": ex.Name, "description": ex.Description})
	return ex, nil
}

func deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}
