package queue

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/hibiken/asynq"

	"agentrl/internal/errs"
	"agentrl/internal/redis"
)

// Stats is one queue as Redis has it. Processed and Failed count deliveries of today (UTC). What the runs themselves
// are doing is in SQL.
type Stats struct {
	Queue                                       string
	Pending, Active, Retry, Scheduled, Archived int
	Paused                                      bool
	Processed, Failed                           int
}

// Delivery is one task in Redis.
type Delivery struct {
	ID, Queue, State string
	RunID            int64
	Attempt          int // the run's latest attempt when it was queued
	Retried          int
	LastError        string
}

// Inspector looks into the queue for the queue page. Safe for concurrent use.
type Inspector struct{ ins *asynq.Inspector }

// NewInspector uses rc, which stays the caller's.
func NewInspector(rc *redis.Client) *Inspector {
	return &Inspector{asynq.NewInspectorFromRedisClient(rc.Redis())}
}

// Queues lists the queues that ever had a task, by name. Unavailable: Redis does not answer.
func (i *Inspector) Queues(ctx context.Context) ([]Stats, error) {
	names, err := i.ins.Queues()
	if err != nil {
		return nil, unavailable(err)
	}
	slices.Sort(names)
	out := make([]Stats, 0, len(names))
	for _, n := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		q, err := i.ins.GetQueueInfo(n)
		if errors.Is(err, asynq.ErrQueueNotFound) {
			continue
		}
		if err != nil {
			return nil, unavailable(err)
		}
		out = append(out, Stats{Queue: n, Pending: q.Pending, Active: q.Active, Retry: q.Retry, Scheduled: q.Scheduled,
			Archived: q.Archived, Paused: q.Paused, Processed: q.Processed, Failed: q.Failed})
	}
	return out, nil
}

// page is how many tasks are read of one list; a run beyond it is still found by Lookup.
const page = 200

// Find lists the deliveries of a run among the first 200 of every list, active ones first.
func (i *Inspector) Find(ctx context.Context, runID int64) ([]Delivery, error) {
	all, err := i.List(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(d Delivery) bool { return d.RunID != runID }), nil
}

// List lists up to 200 deliveries of every queue and state.
func (i *Inspector) List(ctx context.Context) ([]Delivery, error) {
	names, err := i.ins.Queues()
	if err != nil {
		return nil, unavailable(err)
	}
	slices.Sort(names)
	var out []Delivery
	lists := []func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error){
		i.ins.ListActiveTasks, i.ins.ListPendingTasks, i.ins.ListRetryTasks, i.ins.ListScheduledTasks, i.ins.ListArchivedTasks}
	for _, list := range lists {
		for _, n := range names {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			infos, err := list(n, asynq.PageSize(page))
			if errors.Is(err, asynq.ErrQueueNotFound) {
				continue
			}
			if err != nil {
				return nil, unavailable(err)
			}
			for _, t := range infos {
				out = append(out, describe(t))
			}
		}
	}
	return out, nil
}

// Lookup finds one delivery by queue and id, however long the queue is. NotFound.
func (i *Inspector) Lookup(_ context.Context, queue, id string) (Delivery, error) {
	t, err := i.ins.GetTaskInfo(queue, id)
	if errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound) {
		return Delivery{}, errs.New(errs.NotFound, "there is no task %s in queue %s", id, queue)
	}
	if err != nil {
		return Delivery{}, unavailable(err)
	}
	return describe(t), nil
}

func describe(t *asynq.TaskInfo) Delivery {
	d, _ := parseDelivery(t.Payload) // a foreign task is listed without a run
	return Delivery{ID: t.ID, Queue: t.Queue, State: strings.ToLower(t.State.String()), RunID: d.RunID, Attempt: d.Attempt,
		Retried: t.Retried, LastError: t.LastErr}
}

func unavailable(err error) error {
	return errs.Wrap(errs.Unavailable, err, "the queue does not answer")
}
