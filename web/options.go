// Package web is the HTTP face of the product: pages, JSON API and the live websocket. Framework types stay inside it.
package web

import (
	"context"
	"io/fs"
	"log/slog"
	"net/url"
	"time"

	"agentrl/internal/auth"
	"agentrl/internal/experiment"
	"agentrl/internal/store"
)

// Store is the part of the store that pages and API use.
type Store interface {
	store.Users
	store.Saved
	runStore
	recordStore
	Ping(ctx context.Context) error
}

// runStore is experiments, runs, jobs and workers without the leases, which are the workers' business.
type runStore interface {
	store.Runs
}

// recordStore is what pages read of a run's records.
type recordStore interface {
	readRecords
}

// Enqueuer hands a queued run to the queue. SQL is the truth: an error is logged and repaired by reconciliation.
type Enqueuer interface {
	EnqueueRun(ctx context.Context, run experiment.Run) error
}

// Options is everything the server is given. Logger, Clock and Static have defaults.
type Options struct {
	Store     Store
	Enqueuer  Enqueuer
	BaseURL   *url.URL // what browsers use; https gives __Host- cookies and HSTS
	Addr      string   // listen address for Start
	Static    fs.FS    // nil: the embedded files
	Logger    *slog.Logger
	Clock     func() time.Time
	Version   string
	SetupPath string // one-time path of the first-run setup, empty once an account exists
}

// role names read better in the route table without their package.
const (
	anyone     = auth.Role("") // also without signing in
	viewer     = auth.Viewer
	annotator  = auth.Annotator
	researcher = auth.Researcher
	admin      = auth.Admin
)
