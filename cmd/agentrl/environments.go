package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"agentrl/internal/env/alfworld"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

// trainableTasks lists what a run file may name.
func trainableTasks() []string {
	return []string{"alfworld-train", "alfworld-valid", "alfworld-test"}
}

func (p *program) envCmd() *cobra.Command {
	parent := &cobra.Command{Use: "env", Short: "Work with environments by hand", Args: cobra.NoArgs, RunE: showHelp}
	parent.AddCommand(p.envListCmd(), p.envReplayCmd(), p.envPlayCmd(), p.envBenchCmd())
	return parent
}

func onlyALFWorld(name string) error {
	if name != "alfworld" {
		return errs.New(errs.Invalid, "%q is not an environment; allowed is alfworld", name)
	}
	return nil
}

func (p *program) envListCmd() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List tasks", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			g, err := gatewayFor(experiment.Defaults())
			if err != nil {
				return err
			}
			specs, err := g.Specs(c.Context())
			if err != nil {
				return err
			}
			for _, s := range specs {
				fmt.Fprintf(p.io.out, "%s\t%s\t%d samples\t%d turns\n", s.Task, s.Code, s.Samples, s.TurnLimit)
			}
			return nil
		},
	}
}

func (p *program) envReplayCmd() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "replay alfworld DIR", Short: "Replay the stored walkthrough of every game below a folder", Args: cobra.ExactArgs(2),
		Long: "Replays the stored walkthrough of every game file below DIR. A game matches when every command is admissible when it is\ngiven and the game is won exactly at the last one. The exit status is 1 on any mismatch and when there are no games.",
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.RunE = func(c *cobra.Command, args []string) error {
		if err := onlyALFWorld(args[0]); err != nil {
			return err
		}
		r, err := alfworld.Replay(c.Context(), args[1], p.every100)
		for _, d := range r.Details {
			fmt.Fprintln(p.io.err, d)
		}
		if asJSON {
			if e := json.NewEncoder(p.io.out).Encode(map[string]int{"games": r.Games, "won_at_last": r.WonAtLast, "mismatches": r.Mismatches}); e != nil {
				return e
			}
		} else if err == nil {
			fmt.Fprintf(p.io.out, "%d games, %d won at the last command, %d mismatches\n", r.Games, r.WonAtLast, r.Mismatches)
		}
		switch {
		case err != nil:
			return err
		case r.Games == 0 || r.Mismatches > 0 || r.WonAtLast != r.Games:
			return silent{errors.New("stored walkthroughs do not win as they should")}
		}
		return nil
	}
	return cmd
}

func (p *program) envPlayCmd() *cobra.Command {
	var level int
	var sample int64
	var file string
	cmd := &cobra.Command{Use: "play alfworld", Short: "Play a game in the terminal", Args: cobra.ExactArgs(1)}
	cmd.Flags().IntVar(&level, "level", 1, "difficulty of the generated game, 0 to 4")
	cmd.Flags().Int64Var(&sample, "sample", 0, "index of the generated game")
	cmd.Flags().StringVar(&file, "game", "", "play this game file instead")
	cmd.RunE = func(c *cobra.Command, args []string) error {
		if err := onlyALFWorld(args[0]); err != nil {
			return err
		}
		g, err := pickGame(file, level, sample)
		if err != nil {
			return err
		}
		return alfworld.Play(c.Context(), p.io.in, p.io.out, g)
	}
	return cmd
}

// every100 shows progress on a long replay.
func (p *program) every100(done, total int) {
	if done%100 == 0 || done == total {
		fmt.Fprintf(p.io.err, "%d of %d games\n", done, total)
	}
}

func pickGame(file string, level int, sample int64) (*alfworld.Game, error) {
	if file != "" {
		return alfworld.Open(file, "current")
	}
	g, err := alfworld.NewGenerator(alfworld.NewLibrary(), level, "current")
	if err != nil {
		return nil, err
	}
	if sample < 0 {
		return nil, errs.Field("sample", "must be 0 or more")
	}
	kinds := g.Kinds()
	return g.Game(kinds[sample%int64(len(kinds))], sample)
}

func (p *program) envBenchCmd() *cobra.Command {
	return &cobra.Command{
		Use: "bench alfworld [DIR]", Short: "Measure loading, stepping and generation; DIR holds real games", Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := onlyALFWorld(args[0]); err != nil {
				return err
			}
			dir := ""
			if len(args) == 2 {
				dir = args[1]
			}
			figures, err := benchGames(c.Context(), dir)
			if err != nil {
				return err
			}
			return p.printFigures(figures)
		},
	}
}
