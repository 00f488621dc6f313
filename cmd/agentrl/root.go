package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"agentrl/internal/config"
)

// stdio is where a command reads and writes: data to out, logs and progress to err.
type stdio struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// hooks lets end-to-end tests act at named points of a run, for example by killing the process there.
type hooks struct {
	point func(name string)
}

// program is what every subcommand shares.
type program struct {
	io    stdio
	hooks hooks
}

// run executes one command line; ctx ends at the first interrupt.
func run(ctx context.Context, args []string, io stdio, h hooks) error {
	p := &program{io: io, hooks: h}
	root := &cobra.Command{
		Use:           "agentrl",
		Short:         "Train LLM agents by reinforcement learning on multi-turn tasks, and watch it happen",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE:          showHelp,
	}
	root.SetArgs(args)
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.AddCommand(p.serveCmd(), p.workerCmd(), p.trainCmd(), p.envCmd(), p.userCmd(), p.tokenCmd(), p.migrateCmd(),
		p.benchCmd(), p.healthCmd(), p.versionCmd())
	return root.ExecuteContext(ctx)
}

// configured adds the named options to a command and loads them before it runs.
func (p *program) configured(cmd *cobra.Command, names []string, do func(ctx context.Context, cfg config.Config, log *slog.Logger, args []string) error) *cobra.Command {
	config.Register(cmd.Flags(), append(names, "log-level", "log-format")...)
	cmd.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := config.Load(c.Flags(), os.Environ())
		if err != nil {
			return err
		}
		return do(c.Context(), cfg, p.logger(cfg), args)
	}
	return cmd
}

func (p *program) logger(cfg config.Config) *slog.Logger {
	o := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(p.io.err, o))
	}
	return slog.New(slog.NewTextHandler(p.io.err, o))
}

func (p *program) versionCmd() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(p.io.out, version)
			return err
		},
	}
}

// showHelp is what a command does that only has subcommands; having it makes cobra refuse unknown ones.
func showHelp(c *cobra.Command, _ []string) error { return c.Help() }
