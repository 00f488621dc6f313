package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"agentrl/internal/config"
)

var update = flag.Bool("update", false, "rewrite the parts of the documentation that are generated")

// TestConfigurationTable holds the README's table against the options.
func TestConfigurationTable(t *testing.T) {
	t.Parallel()
	const path, begin, end = "../../README.md", "<!-- config:begin -->\n", "<!-- config:end -->"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	table, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("README.md lacks the marks around the configuration table")
	}
	if table == config.Docs() {
		return
	}
	if !*update {
		t.Fatal("the configuration table in README.md is not current; go test ./cmd/agentrl -run TestConfigurationTable -update rewrites it")
	}
	if err := os.WriteFile(path, []byte(before+begin+config.Docs()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
