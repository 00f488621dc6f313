package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agentrl/internal/auth"
	"agentrl/internal/config"
	"agentrl/internal/errs"
	"agentrl/internal/store"
)

var storeOptions = []string{"data", "database-url"}

// maxPassword bounds what is read from standard input.
const maxPassword = 4096

func (p *program) userCmd() *cobra.Command {
	parent := &cobra.Command{Use: "user", Short: "Manage accounts", Args: cobra.NoArgs, RunE: showHelp}
	var email, name, role string
	var stdin bool
	create := &cobra.Command{
		Use: "create", Short: "Create an account; the password is read from standard input", Args: cobra.NoArgs,
		Example: "  printf %s \"$PASSWORD\" | agentrl user create --email me@example.org --role admin --password-stdin",
	}
	create.Flags().StringVar(&email, "email", "", "email address (required)")
	create.Flags().StringVar(&name, "name", "", "name to show")
	create.Flags().StringVar(&role, "role", string(auth.Viewer), "admin, researcher, annotator or viewer")
	create.Flags().BoolVar(&stdin, "password-stdin", false, "read the password from standard input (required)")
	_ = create.MarkFlagRequired("email")
	p.configured(create, storeOptions, func(ctx context.Context, cfg config.Config, log *slog.Logger, _ []string) error {
		if !stdin {
			return errs.Field("password-stdin", "give the password on standard input with --password-stdin; it is never taken from the command line, where others can see it")
		}
		if auth.Role(role).Rank() == 0 {
			return errs.Field("role", "%q is not a role; allowed are admin, researcher, annotator and viewer", role)
		}
		password, err := readPassword(p.io.in)
		if err != nil {
			return err
		}
		return withAuth(ctx, cfg, log, func(_ *store.Store, a *auth.Service) error {
			u, err := a.CreateUser(ctx, auth.User{}, auth.NewUser{Email: email, Name: name, Password: password, Role: auth.Role(role)}, auth.Origin{Addr: "command line"})
			if err != nil {
				return err
			}
			fmt.Fprintf(p.io.err, "created %s as %s\n", u.Email, u.Role)
			return nil
		})
	})
	list := &cobra.Command{Use: "list", Short: "List accounts", Args: cobra.NoArgs}
	p.configured(list, storeOptions, func(ctx context.Context, cfg config.Config, log *slog.Logger, _ []string) error {
		return withAuth(ctx, cfg, log, func(st *store.Store, _ *auth.Service) error {
			users, err := st.ListUsers(ctx)
			if err != nil {
				return err
			}
			for _, u := range users {
				state := "enabled"
				if u.Disabled {
					state = "disabled"
				}
				fmt.Fprintf(p.io.out, "%d\t%s\t%s\t%s\n", u.ID, u.Email, u.Role, state)
			}
			return nil
		})
	})
	parent.AddCommand(create, list)
	return parent
}

func (p *program) tokenCmd() *cobra.Command {
	parent := &cobra.Command{Use: "token", Short: "Manage API tokens", Args: cobra.NoArgs, RunE: showHelp}
	var email, name, role string
	var ttl time.Duration
	create := &cobra.Command{Use: "create", Short: "Create an API token and print it, alone, on standard output", Args: cobra.NoArgs}
	create.Flags().StringVar(&email, "email", "", "account that the token acts for (required)")
	create.Flags().StringVar(&name, "name", "command line", "name to tell tokens apart")
	create.Flags().StringVar(&role, "role", "", "highest role of the token (default: the account's)")
	create.Flags().DurationVar(&ttl, "expires", 0, "time until it expires (default: never)")
	_ = create.MarkFlagRequired("email")
	p.configured(create, storeOptions, func(ctx context.Context, cfg config.Config, log *slog.Logger, _ []string) error {
		return withAuth(ctx, cfg, log, func(st *store.Store, a *auth.Service) error {
			u, err := st.UserByEmail(ctx, email)
			if errs.CodeOf(err) == errs.NotFound {
				return errs.Field("email", "there is no account with the address %q; `agentrl user list` shows all", email)
			}
			if err != nil {
				return err
			}
			r := u.Role
			if role != "" {
				r = auth.Role(role)
			}
			plain, _, err := a.CreateToken(ctx, u, name, r, ttl, auth.Origin{Addr: "command line"})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(p.io.out, plain)
			return err
		})
	})
	parent.AddCommand(create)
	return parent
}

func (p *program) migrateCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Bring the database to this version", Args: cobra.NoArgs}
	return p.configured(cmd, storeOptions, func(ctx context.Context, cfg config.Config, log *slog.Logger, _ []string) error {
		st, err := openStore(ctx, cfg, log)
		if err != nil {
			return err
		}
		return st.Close()
	})
}

// withAuth opens the store for one command.
func withAuth(ctx context.Context, cfg config.Config, log *slog.Logger, do func(*store.Store, *auth.Service) error) error {
	st, err := openStore(ctx, cfg, log)
	if err != nil {
		return err
	}
	a, err := auth.NewService(st, auth.Options{Logger: log})
	if err == nil {
		err = do(st, a)
	}
	return errors.Join(err, st.Close())
}

// readPassword takes the first line, without its end.
func readPassword(r io.Reader) (string, error) {
	s, err := bufio.NewReader(io.LimitReader(r, maxPassword+1)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	if len(s) > maxPassword {
		return "", errs.Field("password", "is longer than %d bytes", maxPassword)
	}
	return strings.TrimRight(s, "\r\n"), nil
}
