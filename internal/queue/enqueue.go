package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/redis"
)

// taskTrain is the type of the only kind of task.
const taskTrain = "train"

// retries is how often asynq may deliver again by itself. The reconciler does what is left.
const retries = 100

// forever outlives any run: asynq ends a task without a deadline after 30 minutes.
const forever = 10 * 365 * 24 * time.Hour

// delivery is a task's payload: which run, and after which attempt of it.
type delivery struct {
	RunID   int64 `json:"run"`
	Attempt int   `json:"attempt"`
}

func parseDelivery(b []byte) (delivery, error) {
	var d delivery
	if err := json.Unmarshal(b, &d); err != nil {
		return d, errs.Wrap(errs.Invalid, err, "a queue message is not a delivery")
	}
	if d.RunID <= 0 || d.Attempt < 0 {
		return d, errs.New(errs.Invalid, "a queue message names run %d after attempt %d", d.RunID, d.Attempt)
	}
	return d, nil
}

// taskID is unique per run and attempt, so that a run waits in the queue once, and a delivery to a worker that died
// does not stand in the way of the next. again counts further deliveries of the same attempt.
func taskID(run int64, attempt, again int) string {
	id := fmt.Sprintf("run-%d-after-%d", run, attempt)
	if again > 0 {
		id += fmt.Sprintf("-again-%d", again)
	}
	return id
}

// Enqueuer puts runs into the queue. Safe for concurrent use.
type Enqueuer struct {
	client *asynq.Client
	ins    *asynq.Inspector
}

// NewEnqueuer uses rc, which stays the caller's.
func NewEnqueuer(rc *redis.Client) *Enqueuer {
	return &Enqueuer{client: asynq.NewClientFromRedisClient(rc.Redis()), ins: asynq.NewInspectorFromRedisClient(rc.Redis())}
}

// Enqueue delivers run to a worker of run.Queue. Call it after the row is committed. Doing it twice is harmless, and
// failing to do it only costs time: the reconciler finds the run. Unavailable: Redis does not answer.
func (e *Enqueuer) Enqueue(ctx context.Context, run experiment.Run) error {
	_, err := e.deliver(ctx, run, 0)
	return err
}

// deliver enqueues and reports whether an earlier delivery is said to be with a worker.
func (e *Enqueuer) deliver(ctx context.Context, run experiment.Run, again int) (active bool, err error) {
	if run.ID <= 0 || run.Queue == "" {
		return false, errs.New(errs.Invalid, "a run needs an id and a queue to be delivered")
	}
	body, err := json.Marshal(delivery{run.ID, run.Attempt})
	if err != nil {
		return false, err
	}
	id := taskID(run.ID, run.Attempt, again)
	opts := []asynq.Option{asynq.Queue(run.Queue), asynq.TaskID(id), asynq.MaxRetry(retries), asynq.Deadline(time.Now().Add(forever))}
	for range 2 {
		_, err = e.client.EnqueueContext(ctx, asynq.NewTask(taskTrain, body), opts...)
		if !errors.Is(err, asynq.ErrTaskIDConflict) {
			break
		}
		info, infoErr := e.ins.GetTaskInfo(run.Queue, id)
		switch {
		case infoErr != nil: // it has just been taken out
			continue
		case info.State == asynq.TaskStateActive:
			return true, nil
		case info.State == asynq.TaskStateArchived || info.State == asynq.TaskStateCompleted:
			if delErr := e.ins.DeleteTask(run.Queue, id); delErr != nil && !errors.Is(delErr, asynq.ErrTaskNotFound) {
				return false, errs.Wrap(errs.Unavailable, delErr, "run %d could not be queued", run.ID)
			}
			continue
		}
		return false, nil // it waits
	}
	if err != nil && !errors.Is(err, asynq.ErrTaskIDConflict) {
		return false, errs.Wrap(errs.Unavailable, err, "run %d could not be queued; it will be tried again", run.ID)
	}
	return false, nil
}

// Remove takes a run that waits out of the queue. The rows say that it was cancelled; this only saves a delivery.
func (e *Enqueuer) Remove(run experiment.Run) error {
	err := e.ins.DeleteTask(run.Queue, taskID(run.ID, run.Attempt, 0))
	if err == nil || errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound) {
		return nil
	}
	return errs.Wrap(errs.Unavailable, err, "run %d could not be taken out of the queue", run.ID)
}
