package web

import (
	"slices"

	"agentrl/internal/auth"
)

// kind says how a route answers: a page (HTML, redirects, flash messages) or the API (JSON).
type kind int

const (
	page kind = iota
	api
)

// route is one line of the route table. Min is the lowest role that may use it; anyone needs no sign-in. BodyLimit is
// in bytes; 0 means the default of its kind.
type route struct {
	Method    string
	Path      string // with :name parameters
	Min       auth.Role
	Kind      kind
	Handler   handler
	BodyLimit int64
}

// handler answers one request. A returned error becomes an error page or a JSON error in one place (errors.go).
type handler func(*request) error

// routes is the whole table. A test walks it for every role.
func (s *Server) routes() []route {
	return slices.Concat(s.systemRoutes(), s.signRoutes(), s.settingsRoutes(), s.adminRoutes(), s.savedRoutes(), s.pageRoutes(), s.apiRoutes())
}

// apiRoutes are the JSON API; openapi.yaml describes each of them.
func (s *Server) apiRoutes() []route {
	all := slices.Concat(s.apiExperimentRoutes(), s.apiRunRoutes(), s.apiRecordRoutes(), s.apiSavedRoutes(), s.apiPeopleRoutes(), s.apiSystemRoutes())
	for i := range all {
		all[i].Kind = api
	}
	return all
}
