package alfworld

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Play lets a person play a game: one command a line. "?" lists what is possible, "quit" or the end of the input ends.
func Play(ctx context.Context, in io.Reader, out io.Writer, g *Game) error {
	lines := bufio.NewReader(in)
	p := g.Reset()
	if _, err := fmt.Fprintf(out, "%s\n", g.Intro()); err != nil {
		return err
	}
	for !p.Won() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if _, err := fmt.Fprint(out, "> "); err != nil {
			return err
		}
		line, err := lines.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		end := err != nil
		text := ""
		switch line = strings.TrimSpace(line); line {
		case "quit":
			return nil
		case "":
		case "?":
			text = strings.Join(p.Commands(), "\n")
		default:
			if text, err = p.Step(line); err != nil {
				return err
			}
		}
		if text != "" {
			if _, err := fmt.Fprintf(out, "%s\n", text); err != nil {
				return err
			}
		}
		if end && !p.Won() {
			return nil
		}
	}
	_, err := fmt.Fprintln(out, "You won.")
	return err
}

// Open loads a game file for play in the given wording.
func Open(path, wording string) (*Game, error) {
	f, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return NewLibrary().Load(f, wording)
}
