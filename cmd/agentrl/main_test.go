package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestMain lets the test binary be the program itself, so that end-to-end tests start, kill and restart real
// processes. killAt, "name:n", kills the process with SIGKILL when the named point of a run is passed the nth time.
func TestMain(m *testing.M) {
	if os.Getenv("BE_AGENTRL") == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signals(context.Background())
	err := run(ctx, os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}, hooks{point: killer(os.Getenv("BE_AGENTRL_KILL_AT"))})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "agentrl:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func killer(at string) func(string) {
	name, count, ok := strings.Cut(at, ":")
	if !ok {
		return nil
	}
	n, err := strconv.ParseInt(count, 10, 64)
	if err != nil {
		panic(err)
	}
	var seen atomic.Int64
	return func(point string) {
		if point == name && seen.Add(1) == n {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal arrives asynchronously; nothing may happen after it
		}
	}
}

// exec runs a command line in this process and returns what it printed.
func command(t *testing.T, stdin string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	err = run(t.Context(), args, stdio{in: strings.NewReader(stdin), out: &out, err: io.Writer(&errOut)}, hooks{})
	return out.String(), errOut.String(), err
}
