// Package config is the one table of options.
package config

import (
	"errors"
	"log/slog"

	"github.com/spf13/pflag"
)

// Secret is text that is never printed.
type Secret string

// Reveal returns the text.
func (s Secret) Reveal() string { return string(s) }

// Config is the typed result.
type Config struct {
	Addr              string   // --addr
	Data              string   // --data
	DatabaseURL       Secret   // --database-url, empty: SQLite below Data
	RedisURL          Secret   // --redis-url, empty: embedded
	BaseURL           string   // --base-url, empty: http://Addr
	Queues            []string // --queues
	Slots             int      // --slots
	Threads           int      // --threads, 0: all cores
	MemoryLimit       int64    // --memory-limit, bytes, 0: none
	LogLevel          slog.Level
	LogFormat         string // text | json
	AlfworldData      string
	AllowInsecureBind bool
	NoWorker          bool // --no-worker: serve without taking runs
}

// Register adds the named options, or all, as flags.
func Register(fs *pflag.FlagSet, names ...string) {}

// Load reads flags set on fs, then the environment, then defaults. environ is os.Environ().
func Load(fs *pflag.FlagSet, environ []string) (Config, error) {
	return Config{}, errors.New("not built yet")
}
