package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAccountsFromTheCommandLine(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, _, err := command(t, "correct horse battery staple\n", "user", "create", "--email", "a@example.org", "--role", "admin", "--password-stdin", "--data", dir); err != nil {
		t.Fatal(err)
	}
	out, _, err := command(t, "", "token", "create", "--email", "a@example.org", "--data", dir)
	if err != nil {
		t.Fatal(err)
	}
	if token := strings.TrimSuffix(out, "\n"); len(token) < 40 || strings.ContainsAny(token, " \n\t") {
		t.Fatalf("standard output is not a bearer token alone: %q", out)
	}
	out, _, err = command(t, "", "user", "list", "--data", dir)
	if err != nil || !strings.Contains(out, "a@example.org\tadmin\tenabled") {
		t.Fatalf("list: %q, %v", out, err)
	}
}

func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(file, []byte("name: x\nbudget: {steps: 3}\nalgorithm:\n  groupsize: 4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"unknown command", []string{"fly"}, []string{"fly"}},
		{"unknown role", []string{"user", "create", "--email", "a@b.c", "--role", "king", "--password-stdin", "--data", dir}, []string{"king", "researcher"}},
		{"password on the command line", []string{"user", "create", "--email", "a@b.c", "--data", dir}, []string{"password-stdin"}},
		{"token of nobody", []string{"token", "create", "--email", "nobody@example.org", "--data", dir}, []string{"nobody@example.org"}},
		{"unknown preset", []string{"train", "nope", "--data", dir}, []string{"nope", "quickstart"}},
		{"unknown key", []string{"train", file, "--data", dir}, []string{"line 4", "groupsize", "group_size"}},
		{"nothing to train", []string{"train", "--data", dir}, []string{"quickstart", "--resume"}},
		{"resume of nothing", []string{"train", "--resume", "99", "--data", dir}, []string{"99"}},
		{"unknown benchmark", []string{"bench", "nope"}, []string{"nope", "gemm"}},
		{"no games", []string{"env", "replay", "alfworld", dir}, []string{".tw-pddl"}},
		{"folder that is not there", []string{"env", "replay", "alfworld", filepath.Join(dir, "none")}, []string{"none"}},
		{"unknown environment", []string{"env", "replay", "chess", dir}, []string{"chess", "alfworld"}},
		{"address in the open", []string{"serve", "--addr", "0.0.0.0:0", "--data", dir}, []string{"0.0.0.0", "--allow-insecure-bind"}},
		{"address that is none", []string{"serve", "--addr", "nowhere", "--data", dir}, []string{"nowhere"}},
		{"worker alone", []string{"worker", "--data", dir}, []string{"redis-url"}},
		{"missing games", []string{"train", "alfworld-real", "--data", dir}, []string{"--alfworld-data"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := command(t, "some long password\n", c.args...)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
}

// TestModelThatIsNone holds that a directory without a model fails the run with its reason, and not with a panic.
func TestModelThatIsNone(t *testing.T) {
	t.Parallel()
	dir, empty := t.TempDir(), t.TempDir()
	file := filepath.Join(dir, "run.yaml")
	text := "name: x\ntasks: [{task: alfworld-train, weight: 1}]\npolicy: {base: " + empty + "}\nbudget: {steps: 1}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := command(t, "", "train", file, "--data", dir)
	if err == nil || !strings.Contains(err.Error(), "holds no model") || strings.Contains(err.Error(), "internal error") {
		t.Fatalf("the reason is %v", err)
	}
}
