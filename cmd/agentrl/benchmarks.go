package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"agentrl/internal/errs"
	"agentrl/internal/metric"
)

// benchmark measures; dir is where real games are, for those that use them.
type benchmark func(ctx context.Context, dir string) ([]metric.Figure, error)

func (p *program) benchCmd() *cobra.Command {
	all := benchmarks()
	names := make([]string, 0, len(all))
	for n := range all {
		names = append(names, n)
	}
	slices.Sort(names)
	var dir string
	cmd := &cobra.Command{
		Use: "bench NAME", Short: "Measure and print one JSON line per figure: " + strings.Join(names, ", "), Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&dir, "alfworld-data", "", "folder of real games, for the benchmarks that play them")
	cmd.Flags().Bool("json", true, "print JSON lines (the only format)")
	cmd.RunE = func(c *cobra.Command, args []string) error {
		b, ok := all[args[0]]
		if !ok {
			return errs.New(errs.NotFound, "%q is not a benchmark; there are %s", args[0], strings.Join(names, ", "))
		}
		figures, err := b(c.Context(), dir)
		if err != nil {
			return err
		}
		return p.printFigures(figures)
	}
	return cmd
}

func (p *program) printFigures(figures []metric.Figure) error {
	enc := json.NewEncoder(p.io.out)
	for _, f := range figures {
		if err := enc.Encode(f); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	return nil
}
