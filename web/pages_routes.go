package web

import (
	"net/http"
)

const draftBody = 600 << 10 // a run file of the largest size, form-encoded, with the form around it

// pageRoutes lists the pages of experiments, runs, groups and trajectories.
func (s *Server) pageRoutes() []route {
	get := func(path string, h handler) route {
		return route{Method: http.MethodGet, Path: path, Min: viewer, Kind: page, Handler: h}
	}
	post := func(path string, h handler) route {
		return route{Method: http.MethodPost, Path: path, Min: researcher, Kind: page, Handler: h}
	}
	create := post("/runs", s.postRun)
	create.BodyLimit = draftBody
	return []route{
		get("/", func(r *request) error { return r.Redirect("/runs") }),
		get("/experiments", s.experimentsPage),
		post("/experiments", s.postExperiment),
		get("/runs", s.runsPage),
		{Method: http.MethodGet, Path: "/runs/new", Min: researcher, Kind: page, Handler: s.newRunPage},
		{Method: http.MethodPost, Path: "/runs/draft", Min: researcher, Kind: api, Handler: s.draftAPI, BodyLimit: draftBody},
		create,
		get("/runs/:id", s.overviewPage),
		get("/runs/:id/rollouts", s.rolloutsPage),
		get("/runs/:id/groups", s.groupsPage),
		get("/runs/:id/evaluations", s.evaluationsPage),
		get("/runs/:id/config", s.configPage),
		get("/runs/:id/attempts", s.attemptsPage),
		get("/runs/:id/log", s.logPage),
		post("/runs/:id/stop", s.postSignal("stop", "The run saves a checkpoint and stops.")),
		post("/runs/:id/cancel", s.postSignal("cancel", "The run is cancelled.")),
		post("/runs/:id/resume", s.postResume),
		get("/trajectories/:id", s.trajectoryPage),
		{Method: http.MethodGet, Path: "/trajectories/:id/tokens", Min: viewer, Kind: api, Handler: s.tokensAPI},
		{Method: http.MethodGet, Path: "/palette", Min: viewer, Kind: api, Handler: s.paletteAPI},
	}
}
