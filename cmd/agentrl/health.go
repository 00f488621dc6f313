package main

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"
)

func (p *program) healthCmd() *cobra.Command {
	var addr string
	cmd := &cobra.Command{
		Use: "health", Short: "Ask a running server whether it is ready (for container checks)", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			host, port, err := net.SplitHostPort(addr)
			if err != nil {
				return fmt.Errorf("--addr %q is not HOST:PORT", addr)
			}
			req, err := http.NewRequestWithContext(c.Context(), http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
			if err != nil {
				return err
			}
			res, err := (&http.Client{Timeout: 3 * time.Second}).Do(req)
			if err != nil {
				return err
			}
			defer res.Body.Close()
			if res.StatusCode != http.StatusOK {
				return fmt.Errorf("the server answers %s", res.Status)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:8080", "address of the server")
	return cmd
}
