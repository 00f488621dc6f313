package web

import (
	"context"
	"log/slog"
	"strconv"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/live"
	"agentrl/internal/runfile"
)

// newRun is what a run is created from, by the form and by the API alike.
type newRun struct {
	ExperimentID int64  // or
	Experiment   string // the name; created when there is none yet; empty means "default"
	YAML         []byte
	ForkedFrom   int64
}

const (
	defaultExperiment = "default"
	maxExperimentName = 120
	maxDescription    = 4000
)

// taskNames lists the tasks that can be played, for validation; nil, which checks nothing, when they are not known.
func (s *Server) taskNames(ctx context.Context) []string {
	if s.o.Tasks == nil {
		return nil
	}
	specs, err := s.o.Tasks.Specs(ctx)
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "tasks are not known", slog.Any("err", err))
		return nil
	}
	names := make([]string, 0, len(specs))
	for _, sp := range specs {
		names = append(names, sp.Task)
	}
	return names
}

// createRun validates the run file, creates the run and hands it to the queue. Problems are the file's; nothing is
// written when there are any.
func (s *Server) createRun(r *request, in newRun) (experiment.Run, []runfile.Problem, error) {
	ctx := r.Context()
	conf, problems := runfile.Parse(in.YAML, s.taskNames(ctx))
	if len(problems) > 0 {
		return experiment.Run{}, problems, nil
	}
	ex, err := s.findExperiment(r, in.ExperimentID, in.Experiment)
	if err != nil {
		return experiment.Run{}, nil, err
	}
	run, err := s.store.CreateRun(ctx, experiment.Run{
		ExperimentID: ex.ID, Experiment: ex.Name, Name: conf.Name, OwnerID: r.user.ID, State: experiment.Queued,
		Config: conf, ConfigYAML: string(in.YAML), Queue: conf.Worker.Queue, Seed: conf.Seed,
		ForkedFrom: in.ForkedFrom,
	})
	if err != nil {
		return run, nil, err
	}
	s.record(r, "run.create", runObject(run.ID), nil, map[string]any{"name": run.Name, "experiment": ex.Name, "forked_from": in.ForkedFrom})
	s.enqueue(ctx, run)
	return run, nil, nil
}

// findExperiment looks an experiment up by id, or by name and creates it when the name is new.
func (s *Server) findExperiment(r *request, id int64, name string) (experiment.Experiment, error) {
	if id > 0 {
		return s.store.Experiment(r.Context(), id)
	}
	if name == "" {
		name = defaultExperiment
	}
	ex, err := s.store.ExperimentByName(r.Context(), name)
	if errs.CodeOf(err) != errs.NotFound {
		return ex, err
	}
	return s.createExperiment(r, name, "")
}

// createExperiment checks the texts and inserts the experiment. Conflict: the name is taken.
func (s *Server) createExperiment(r *request, name, description string) (experiment.Experiment, error) {
	if err := checkName("name", name, maxExperimentName); err != nil {
		return experiment.Experiment{}, err
	}
	if err := checkText("description", description, maxDescription); err != nil {
		return experiment.Experiment{}, err
	}
	ex, err := s.store.CreateExperiment(r.Context(), experiment.Experiment{Name: name, Description: description, OwnerID: r.user.ID})
	if err != nil {
		return ex, err
	}
	s.record(r, "experiment.create", experimentObject(ex.ID), nil, map[string]any{"name": name})
	return ex, nil
}

// signalRun asks a run to stop (saving a checkpoint, to be resumed) or to be cancelled.
func (s *Server) signalRun(r *request, id int64, sig experiment.Signal) error {
	before, err := s.store.Run(r.Context(), id)
	if err != nil {
		return err
	}
	if err := s.store.RequestStop(r.Context(), id, sig); err != nil {
		return err
	}
	s.afterChange(r, before, "run."+string(sig))
	return nil
}

// resumeRun queues a stopped, failed or cancelled run again.
func (s *Server) resumeRun(r *request, id int64) error {
	before, err := s.store.Run(r.Context(), id)
	if err != nil {
		return err
	}
	if err := s.store.Resume(r.Context(), id); err != nil {
		return err
	}
	if run := s.afterChange(r, before, "run.resume"); run.State == experiment.Queued {
		s.enqueue(r.Context(), run)
	}
	return nil
}

// afterChange records what changed and tells open pages; it returns the run as it is now.
func (s *Server) afterChange(r *request, before experiment.Run, action string) experiment.Run {
	now, err := s.store.Run(r.Context(), before.ID)
	if err != nil {
		s.log.LogAttrs(r.Context(), slog.LevelError, "reading a changed run", slog.Int64("run", before.ID), slog.Any("err", err))
		now = before
	}
	s.record(r, action, runObject(before.ID), map[string]any{"state": before.State}, map[string]any{"state": now.State})
	s.announce(r.Context(), now)
	return now
}

// enqueue hands the run to the queue and tells open lists.
func (s *Server) enqueue(ctx context.Context, run experiment.Run) {
	if err := s.o.Enqueuer.Enqueue(ctx, run); err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "the queue did not take a run; reconciliation will deliver it", slog.Int64("run", run.ID), slog.Any("err", err))
	}
	s.announce(ctx, run)
}

// announce tells open pages that a run changed. A lost announcement costs freshness only, so errors are logged.
func (s *Server) announce(ctx context.Context, run experiment.Run) {
	if s.o.Publisher == nil {
		return
	}
	ch := live.Changed{ID: strconv.FormatInt(run.ID, 10), State: string(run.State)}
	p := run.Progress
	status := live.StatusItem{
		RunID: run.ID, State: string(run.State), Phase: string(p.Phase), Reason: run.Reason, Attempt: run.Attempt,
		Step: p.Step, Steps: p.Steps, Warmup: p.WarmupStep, Warmups: p.WarmupSteps, ETA: -1,
		Reward: p.RewardMean, Pass: p.PassRate, Eval: p.EvalPass,
	}
	for _, m := range []struct {
		topic string
		kind  live.Kind
		item  any
	}{{live.RunsTopic, live.Delta, ch}, {live.QueueTopic, live.Delta, ch}, {live.StatusTopic(run.ID), live.State, status}} {
		if err := s.o.Publisher.Publish(ctx, m.topic, m.kind, m.item); err != nil {
			s.log.LogAttrs(ctx, slog.LevelWarn, "live announcement failed", slog.String("topic", m.topic), slog.Any("err", err))
		}
	}
}

// record writes the audit entry of a change that has happened; losing it is an error in the log, never the user's.
func (s *Server) record(r *request, action, object string, before, after any) {
	if err := s.o.Auth.Record(r.Context(), r.user, r.origin(), action, object, before, after); err != nil {
		s.log.LogAttrs(r.Context(), slog.LevelError, "audit entry lost", slog.String("action", action), slog.String("object", object), slog.Any("err", err))
	}
}

func runObject(id int64) string { return "run/" + strconv.FormatInt(id, 10) }

func experimentObject(id int64) string { return "experiment/" + strconv.FormatInt(id, 10) }
