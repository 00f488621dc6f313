// Package layers_test holds the direction of imports between the project's packages.
package layers_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "agentrl/"

// rank orders the packages by their longest matching prefix; a package may import packages of lower rank only, and of
// its own rank only where peers says so.
var rank = map[string]int{
	"internal/errs":       0,
	"internal/trajectory": 1,
	"internal/metric":     1,
	"internal/experiment": 2,
	"internal/review":     2,
	"internal/rl":         3,
	"internal/tokenizer":  3,
	"internal/nn":         3,
	"internal/chat":       4,
	"internal/policy":     4,
	"internal/env":        4,
	"internal/engine":     5,
	"internal/rollout":    6,
	"internal/auth":       3,
	"internal/config":     3,
	"internal/redis":      3,
	"internal/live":       7,
	"internal/eval":       7,
	"internal/runfile":    7,
	"internal/store":      7,
	"internal/controller": 7,
	"migrations":          6,
	"internal/train":      8,
	"internal/queue":      9,
	"static":              3,
	"templates":           9,
	"web":                 10,
	"cmd":                 11,
	"internal/app":        11,
}

// peers lists the imports within one rank, besides those inside one package tree.
var peers = map[string][]string{
	"internal/chat":   {"internal/policy"},
	"internal/policy": {"internal/chat"},
	"cmd":             {"internal/app"},
}

// stdlibOnly are the domain packages; metric may use gonum for its statistics.
var stdlibOnly = map[string][]string{
	"internal/errs":       nil,
	"internal/trajectory": nil,
	"internal/experiment": nil,
	"internal/metric":     {"gonum.org/"},
}

// only says who may import a framework, so that a later move touches one folder.
var only = map[string][]string{
	"github.com/labstack/echo/": {"web"},
	"gorm.io/":                  {"internal/store"},
	"github.com/hibiken/asynq":  {"internal/queue", "internal/redis"},
	"github.com/gorilla/":       {"web", "cmd"},
	"github.com/a-h/templ":      {"templates", "web"},
	"database/sql":              {"internal/store", "migrations"},
}

func tree(pkg string) string {
	best := ""
	for p := range rank {
		if (pkg == p || strings.HasPrefix(pkg, p+"/")) && len(p) > len(best) {
			best = p
		}
	}
	return best
}

func TestImportDirection(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		rel, _ := filepath.Rel(root, path)
		pkg := filepath.ToSlash(filepath.Dir(rel))
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(string(src), "//go:build kernelgen") {
			return nil // the generator of the kernels, which is no part of the program
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, parser.ImportsOnly)
		if err != nil {
			return err
		}
		files++
		from := tree(pkg)
		if from == "" {
			t.Errorf("%s: package %s has no place in the layers", rel, pkg)
			return nil
		}
		for _, spec := range f.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			checkImport(t, rel, from, imp)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 50 {
		t.Fatalf("only %d files were looked at", files)
	}
}

func checkImport(t *testing.T, file, from, imp string) {
	t.Helper()
	if strings.HasPrefix(imp, module) {
		to := tree(strings.TrimPrefix(imp, module))
		if to == "" {
			t.Errorf("%s imports %s, which has no place in the layers", file, imp)
			return
		}
		if to != from && rank[to] >= rank[from] && !slices.Contains(peers[from], to) {
			t.Errorf("%s: %s must not import %s", file, from, to)
		}
		return
	}
	if allowed, ok := stdlibOnly[from]; ok && strings.Contains(strings.SplitN(imp, "/", 2)[0], ".") {
		if !slices.ContainsFunc(allowed, func(p string) bool { return strings.HasPrefix(imp, p) }) {
			t.Errorf("%s: the domain package %s imports %s", file, from, imp)
		}
	}
	for prefix, users := range only {
		if strings.HasPrefix(imp, prefix) && !slices.Contains(users, from) {
			t.Errorf("%s: %s is for %v only", file, imp, users)
		}
	}
}
