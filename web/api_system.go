package web

import (
	_ "embed"
	"net/http"
	"slices"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/queue"
)

//go:embed openapi.yaml
var openAPI []byte

func (s *Server) apiSystemRoutes() []route {
	return []route{
		{Method: "GET", Path: "/api/v1/workers", Min: viewer, Handler: s.apiWorkers},
		{Method: "GET", Path: "/api/v1/jobs", Min: viewer, Handler: s.apiJobs},
		{Method: "GET", Path: "/api/v1/jobs/:id", Min: viewer, Handler: s.apiJob},
		{Method: "GET", Path: "/api/v1/queues", Min: viewer, Handler: s.apiQueues},
		{Method: "GET", Path: "/api/v1/tasks", Min: viewer, Handler: s.apiTasks},
		{Method: "GET", Path: "/api/v1/openapi.yaml", Min: anyone, Handler: s.apiDescription},
		{Method: "GET", Path: livePath, Min: viewer, Handler: s.liveSocket},
	}
}

func (s *Server) apiDescription(r *request) error {
	return r.c.Blob(http.StatusOK, "application/yaml", openAPI)
}

func (s *Server) apiWorkers(r *request) error {
	all, err := s.store.Workers(r.Context())
	if err != nil {
		return err
	}
	items, next, total, err := window(r, all)
	if err != nil {
		return err
	}
	return answerList(r, items, next, total)
}

// jobStates lists the states a job may have, in the order of its life.
func jobStates() []experiment.JobState {
	return []experiment.JobState{experiment.JobPending, experiment.JobActive, experiment.JobDone, experiment.JobFailed, experiment.JobCancelled}
}

// jobQuery reads which jobs are asked for.
func (r *request) jobQuery() ([]experiment.JobState, int, error) {
	var states []experiment.JobState
	for _, v := range splitList(r.Query("state")) {
		st := experiment.JobState(v)
		if !slices.Contains(jobStates(), st) {
			return nil, 0, errs.Field("state", "%q is not a state; allowed are %v", clip(v, 40), jobStates())
		}
		states = append(states, st)
	}
	limit, err := r.Limit()
	return states, limit, err
}

func (s *Server) apiJobs(r *request) error {
	states, limit, err := r.jobQuery()
	if err != nil {
		return err
	}
	all, err := s.store.Jobs(r.Context(), states, limit)
	if err != nil {
		return err
	}
	return answerList(r, all, "", nil)
}

// jobDetail is one job with its deliveries in the queue.
type jobDetail struct {
	experiment.Job
	Deliveries []deliveryJSON `json:"deliveries"`
}

type deliveryJSON struct {
	ID      string `json:"id"`
	Queue   string `json:"queue"`
	State   string `json:"state"`
	Retried int    `json:"retried"`
	Error   string `json:"error,omitempty"`
}

func (s *Server) apiJob(r *request) error {
	id, err := r.ID("id")
	if err != nil {
		return err
	}
	j, err := s.store.Job(r.Context(), id)
	if err != nil {
		return err
	}
	out := jobDetail{j, []deliveryJSON{}}
	for _, d := range s.deliveries(r, j.RunID) {
		out.Deliveries = append(out.Deliveries, deliveryJSON{d.ID, d.Queue, d.State, d.Retried, d.LastError})
	}
	return r.JSON(http.StatusOK, out)
}

// queueJSON is one delivery queue's sizes now.
type queueJSON struct {
	Queue     string `json:"queue"`
	Pending   int    `json:"pending"`
	Active    int    `json:"active"`
	Retry     int    `json:"retry"`
	Scheduled int    `json:"scheduled"`
	Archived  int    `json:"archived"`
	Paused    bool   `json:"paused"`
	Processed int    `json:"processed_today"`
	Failed    int    `json:"failed_today"`
}

type queuesJSON struct {
	Jobs      map[experiment.JobState]int64 `json:"jobs"`
	Queues    []queueJSON                   `json:"queues"`
	Reachable bool                          `json:"reachable"` // whether the delivery queue answered
}

func (s *Server) apiQueues(r *request) error {
	counts, err := s.jobCounts(r)
	if err != nil {
		return err
	}
	out := queuesJSON{Jobs: counts, Queues: []queueJSON{}}
	var stats []queue.Stats
	stats, out.Reachable = s.queueStats(r)
	for _, q := range stats {
		out.Queues = append(out.Queues, queueJSON{q.Queue, q.Pending, q.Active, q.Retry, q.Scheduled, q.Archived, q.Paused, q.Processed, q.Failed})
	}
	return r.JSON(http.StatusOK, out)
}

type taskJSON struct {
	Task      string `json:"task"`
	Code      string `json:"code"`
	Samples   int64  `json:"samples"`
	TurnLimit int    `json:"turn_limit"`
}

func (s *Server) apiTasks(r *request) error {
	out := []taskJSON{}
	if s.o.Tasks != nil {
		specs, err := s.o.Tasks.Specs(r.Context())
		if err != nil {
			return errs.Wrap(errs.Unavailable, err, "the tasks cannot be listed now")
		}
		for _, sp := range specs {
			out = append(out, taskJSON{sp.Task, sp.Code, sp.Samples, sp.TurnLimit})
		}
	}
	return answerList(r, out, "", nil)
}
