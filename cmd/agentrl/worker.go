package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentrl/internal/config"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/nn/kernel"
	"agentrl/internal/queue"
)

// drainTime bounds how long runs may take to save at the end of the process.
const drainTime = 2 * time.Minute

func (p *program) workerCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "worker", Short: "Take training runs from the queue", Args: cobra.NoArgs,
		Long: "Takes training runs from the queue until it is interrupted; running ones then save a checkpoint and go back to the queue.\nNeeds the database and the Redis of the web server, and a data directory that all workers share.",
	}
	names := []string{"data", "database-url", "redis-url", "queues", "slots", "threads", "memory-limit", "alfworld-data"}
	return p.configured(cmd, names, func(ctx context.Context, cfg config.Config, log *slog.Logger, _ []string) error {
		if cfg.RedisURL.Reveal() == "" {
			return errs.Field("redis-url", "a worker of its own needs the Redis that the web server uses; `agentrl serve` has a worker inside and needs none")
		}
		if cfg.Slots < 1 {
			return errs.Field("slots", "a worker needs at least 1 slot")
		}
		c, err := openCore(ctx, cfg, log)
		if err != nil {
			return err
		}
		w, err := p.startWorker(ctx, c, queue.ExecutorFunc(p.executor(c, nil).execute))
		if err != nil {
			return errors.Join(err, c.close())
		}
		<-ctx.Done()
		log.Info("draining: runs save a checkpoint; interrupt again to stop at once")
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
		defer cancel()
		return errors.Join(w.Stop(stop), c.close())
	})
}

// startWorker registers and starts a worker of this process.
func (p *program) startWorker(ctx context.Context, c *core, e queue.Executor) (*queue.Worker, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	k, err := kernel.FromEnv()
	if err != nil {
		return nil, err
	}
	w, err := queue.NewWorker(queue.WorkerConfig{
		Redis: c.redis, Store: c.store, Executor: e, Live: c.stream, Logger: c.log, DrainTimeout: drainTime,
		Info: experiment.Worker{
			ID: fmt.Sprintf("%s-%d-%s", host, os.Getpid(), strings.ToLower(rand.Text()[:4])), Host: host, PID: os.Getpid(),
			Queues: c.cfg.Queues, Slots: c.cfg.Slots, Version: version, Kernel: k.Name(),
			CPUs: runtime.NumCPU(), Memory: physicalMemory(), StartedAt: time.Now(),
		},
	})
	if err != nil {
		return nil, err
	}
	return w, w.Start(context.WithoutCancel(ctx))
}
