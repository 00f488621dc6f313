package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"agentrl/internal/auth"
	"agentrl/internal/config"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/live"
	"agentrl/internal/queue"
	"agentrl/web"
)

// pruneEvery is how often sessions that are too old are deleted.
const pruneEvery = time.Hour

func (p *program) serveCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve the web application, with the queue and a worker inside", Args: cobra.NoArgs,
		Long: "Serves the web application. Without --database-url and --redis-url everything is in this process and below --data.\nThe first interrupt drains: runs save a checkpoint and go on at the next start. The second stops at once.",
	}
	names := []string{"addr", "data", "database-url", "redis-url", "base-url", "queues", "slots", "threads", "memory-limit",
		"alfworld-data", "allow-insecure-bind", "no-worker"}
	return p.configured(cmd, names, p.serve)
}

func (p *program) serve(ctx context.Context, cfg config.Config, log *slog.Logger, _ []string) (err error) {
	limitMemory(cfg.MemoryLimit)
	listener, base, err := listen(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	c, err := openCore(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()

	service, err := auth.NewService(c.store, auth.Options{Logger: log})
	if err != nil {
		return err
	}
	hub := live.NewHub(c.redis.Redis(), log)
	if err := hub.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	defer hub.Stop()
	enqueuer := queue.NewEnqueuer(c.redis)
	tasks, err := gatewayFor(experiment.Defaults())
	if err != nil {
		return err
	}
	server, err := web.New(web.Options{
		Store: c.store, Auth: service, Hub: hub, Publisher: c.stream, Enqueuer: enqueuer, Inspector: queue.NewInspector(c.redis),
		Tasks: tasks, BaseURL: base, Addr: listener.Addr().String(), Logger: log, Version: version, AlfworldData: cfg.AlfworldData,
		Texts: web.CheckpointTexts{Data: cfg.Data, Store: c.store},
	})
	if err != nil {
		return err
	}
	if !cfg.NoWorker && cfg.Slots > 0 {
		w, err := p.startWorker(ctx, c, queue.ExecutorFunc(p.executor(c, nil).execute))
		if err != nil {
			return err
		}
		defer func() {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
			defer cancel()
			err = errors.Join(err, w.Stop(stop))
		}()
	}
	reconciler := queue.NewReconciler(queue.ReconcilerConfig{Store: c.store, Enqueuer: enqueuer, Logger: log})
	if err := reconciler.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	defer reconciler.Stop()
	defer prune(ctx, service, log)()

	serving := make(chan error, 1)
	go func() { serving <- server.Serve(listener) }()
	if err := p.greet(ctx, service, base); err != nil {
		return err
	}
	select {
	case err := <-serving:
		return err
	case <-ctx.Done():
	}
	log.Info("draining: runs save a checkpoint; interrupt again to stop at once")
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(server.Shutdown(stop), <-serving)
}

// listen opens the address first, so that a wrong one is told before anything is touched, and says what browsers use.
func listen(ctx context.Context, cfg config.Config) (net.Listener, *url.URL, error) {
	host, _, err := net.SplitHostPort(cfg.Addr)
	if err != nil {
		return nil, nil, errs.Field("addr", "%q is not HOST:PORT", cfg.Addr)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) && !cfg.AllowInsecureBind {
		return nil, nil, errs.Field("addr", "%q is reachable from other machines without TLS; put a TLS proxy in front and say --allow-insecure-bind, or use 127.0.0.1", cfg.Addr)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return nil, nil, errs.Wrap(errs.Unavailable, err, "cannot listen on %s", cfg.Addr)
	}
	text := cfg.BaseURL
	if text == "" {
		text = "http://" + l.Addr().String()
		if host == "localhost" {
			_, port, _ := net.SplitHostPort(l.Addr().String())
			text = "http://localhost:" + port
		}
	}
	base, err := url.Parse(text)
	if err != nil || base.Host == "" {
		return nil, nil, errors.Join(errs.Field("base-url", "%q is not an address such as https://agentrl.example.org", text), l.Close())
	}
	return l, base, nil
}

// greet prints where to go: the one-time setup link at the first start, the address afterwards.
func (p *program) greet(ctx context.Context, a *auth.Service, base *url.URL) error {
	needs, err := a.NeedsSetup(ctx)
	if err != nil {
		return err
	}
	if !needs {
		_, err := fmt.Fprintf(p.io.err, "AgentRL is at %s\n", base)
		return err
	}
	token, err := a.SetupToken(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.io.err, "Create the admin account at %s\n(the link works once, until an account exists)\n", base.JoinPath("setup", token))
	return err
}

// prune deletes old sessions now and then; the result stops it and waits.
func prune(ctx context.Context, a *auth.Service, log *slog.Logger) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		t := time.NewTicker(pruneEvery)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-t.C:
				if err := a.Prune(ctx); err != nil {
					log.Warn("old sessions could not be deleted", slog.Any("err", err))
				}
			}
		}
	}()
	return func() { cancel(); <-done }
}
