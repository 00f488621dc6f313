// Package web is the HTTP face of the product: pages, JSON API and the live websocket. Framework types stay inside it.
package web

import (
	"context"
	"log/slog"
	"net/url"
	"time"

	"agentrl/internal/auth"
	"agentrl/internal/env"
	"agentrl/internal/experiment"
	"agentrl/internal/live"
	"agentrl/internal/metric"
	"agentrl/internal/queue"
	"agentrl/internal/store"
	"agentrl/internal/trajectory"
)

// Store is the part of store.API that pages and API use: all of it except leases and what workers write.
type Store interface {
	store.Users
	store.Runs
	store.Saved
	Series(ctx context.Context, q metric.Query) ([]metric.Series, error)
	Summaries(ctx context.Context, runID int64) ([]metric.Summary, error)
	Groups(ctx context.Context, f store.GroupFilter) ([]experiment.Group, int64, error)
	Trajectories(ctx context.Context, f store.TrajectoryFilter) ([]trajectory.Trajectory, int64, error)
	Trajectory(ctx context.Context, id string) (trajectory.Trajectory, error)
	TrajectoryTokens(ctx context.Context, id string) (tokens []int32, logprobs, train []float32, err error)
	Ping(ctx context.Context) error
}

// Enqueuer hands a queued run to the queue. SQL is the truth: its error is logged, and reconciliation delivers later.
type Enqueuer interface {
	Enqueue(ctx context.Context, run experiment.Run) error
}

// Inspector looks into the delivery queue.
type Inspector interface {
	Queues(ctx context.Context) ([]queue.Stats, error)
	Find(ctx context.Context, runID int64) ([]queue.Delivery, error)
}

// Tasks lists the tasks that can be trained on, with their sizes; env.Gateway implements it.
type Tasks interface {
	Specs(ctx context.Context) ([]env.Spec, error)
}

// Options is everything the server is given. Store, Auth, Hub, Enqueuer and BaseURL are needed; Inspector, Tasks, Texts,
// Publisher, Logger and Clock may be nil.
type Options struct {
	Store     Store
	Auth      *auth.Service
	Hub       *live.Hub
	Publisher live.Publisher // tells lists about changes that pages make
	Enqueuer  Enqueuer
	Inspector Inspector
	Tasks     Tasks
	Texts     TokenTexts // what token ids stand for; nil shows the ids
	BaseURL   *url.URL   // what browsers use; https gives __Host- cookies and HSTS
	Addr      string     // listen address for Start
	Logger    *slog.Logger
	Clock     func() time.Time
	Version   string
	// AlfworldData is the server's folder of real games, which the presets that need one name; empty: none.
	AlfworldData string
}

// Role names read better in the route table without their package.
const (
	anyone     = auth.Role("") // also without signing in
	viewer     = auth.Viewer
	researcher = auth.Researcher
	admin      = auth.Admin
)
