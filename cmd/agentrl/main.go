// Command agentrl trains LLM agents by reinforcement learning and shows what happens while it happens.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signals(context.Background())
	err := run(ctx, os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}, hooks{})
	stop()
	if err == nil {
		return
	}
	var quiet silent
	if !errors.As(err, &quiet) {
		fmt.Fprintln(os.Stderr, "agentrl:", err)
	}
	os.Exit(1)
}

// silent is an error whose story has been told already, as data on standard output.
type silent struct{ error }
