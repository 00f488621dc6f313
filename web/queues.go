package web

import (
	"log/slog"

	"agentrl/internal/experiment"
	"agentrl/internal/queue"
)

// jobCounts counts jobs by state; states without jobs count 0.
func (s *Server) jobCounts(r *request) (map[experiment.JobState]int64, error) {
	m, err := s.store.JobCounts(r.Context())
	if err != nil {
		return nil, err
	}
	out := map[experiment.JobState]int64{}
	for _, st := range jobStates() {
		out[st] = m[st]
	}
	return out, nil
}

// queueStats asks the delivery queue; false when there is none or it does not answer, which is no failure of the page.
func (s *Server) queueStats(r *request) ([]queue.Stats, bool) {
	if s.o.Inspector == nil {
		return nil, false
	}
	q, err := s.o.Inspector.Queues(r.Context())
	if err != nil {
		s.log.LogAttrs(r.Context(), slog.LevelWarn, "the queue cannot be inspected", slog.Any("err", err))
		return nil, false
	}
	return q, true
}

// deliveries are a run's entries in the delivery queue.
func (s *Server) deliveries(r *request, run int64) []queue.Delivery {
	if s.o.Inspector == nil {
		return nil
	}
	d, err := s.o.Inspector.Find(r.Context(), run)
	if err != nil {
		s.log.LogAttrs(r.Context(), slog.LevelWarn, "the queue cannot be inspected", slog.Int64("run", run), slog.Any("err", err))
	}
	return d
}
