package alfworld

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentrl/internal/errs"
)

func encode(t testing.TB, f *File) []byte {
	t.Helper()
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// load reads and loads a game file's bytes.
func loadBytes(b []byte) (*Game, error) {
	f, err := ParseFile(b)
	if err != nil {
		return nil, err
	}
	return NewLibrary().Load(f, Current)
}

func TestHostileFiles(t *testing.T) {
	t.Parallel()
	good := encode(t, mini{facts: miniWorld}.file(t))
	edit := func(f func(*File)) []byte {
		x := mini{facts: miniWorld}.file(t)
		f(x)
		return encode(t, x)
	}
	without := func(key string) []byte {
		var m map[string]any
		if err := json.Unmarshal(good, &m); err != nil {
			t.Fatal(err)
		}
		delete(m, key)
		b, _ := json.Marshal(m)
		return b
	}
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "not the JSON object"},
		{"truncated", good[:len(good)/2], "not the JSON object"},
		{"no domain", without("pddl_domain"), "pddl_domain"},
		{"no grammar", without("grammar"), "grammar"},
		{"no problem", without("pddl_problem"), "pddl_problem"},
		{"no solvable", without("solvable"), "solvable"},
		{"no walkthrough", without("walkthrough"), "walkthrough"},
		{"wrong type", []byte(`{"pddl_domain":3}`), "not the JSON object"},
		{"deep JSON", []byte(strings.Repeat("[", 1_000_000)), "nested deeper"},
		{"long walkthrough", edit(func(f *File) { f.Walkthrough = make([]string, maxWalkthrough+1) }), "allowed are 1000"},
		{"deep PDDL", edit(func(f *File) { f.Domain = strings.Repeat("(", 1_000_000) }), "nested deeper"},
		{"long text", edit(func(f *File) { f.Problem = strings.Repeat("x", maxTextBytes+1) }), "allowed are"},
		{"cut domain", edit(func(f *File) { f.Domain = f.Domain[:500] }), "ends inside"},
		{"trailing text", edit(func(f *File) { f.Domain += ")" }), "after the last"},
		{"no parenthesis", edit(func(f *File) { f.Problem = "hello" }), "must begin with"},
		{"unknown predicate", edit(func(f *File) { f.Problem = strings.Replace(f.Problem, "(openable ", "(lockable ", 1) }), "lockable"},
		{"wrong arity", edit(func(f *File) { f.Problem = strings.Replace(f.Problem, "(openable ", "(openable agent1 ", 1) }), "takes 1 arguments"},
		{"unknown object", edit(func(f *File) { f.Problem = strings.Replace(f.Problem, "(:init", "(:init (openable ghost)", 1) }), "ghost"},
		{"unknown type", edit(func(f *File) { f.Problem = strings.Replace(f.Problem, "- agent", "- robot", 1) }), "robot"},
		{"two types", edit(func(f *File) { f.Problem = strings.Replace(f.Problem, "(:objects", "(:objects agent1 - location ", 1) }), "two types"},
		{"no goal", edit(func(f *File) { f.Problem = strings.Replace(f.Problem, "(:goal", "(:metric", 1) }), ":goal is missing"},
		{"goal without variable", edit(func(f *File) { f.Problem = strings.Replace(f.Problem, "(exists (?r - receptacle)", "(and ()", 1) }), "not declared"},
		{"derived predicates", edit(func(f *File) {
			f.Domain = strings.Replace(f.Domain, "(:action look", "(:derived (x) ()) (:action look", 1)
		}), "not supported"},
		{"many parameters", edit(func(f *File) {
			f.Domain = strings.Replace(f.Domain, "inventory :parameters (?a - agent)", "inventory :parameters (?a ?b ?c ?d ?e ?f ?g ?h ?i - object)", 1)
		}), "allowed are 8"},
		{"too many operators", edit(func(f *File) {
			f.Domain = strings.Replace(f.Domain, "inventory :parameters (?a - agent)", "inventory :parameters (?a ?b ?c ?d ?e ?f - object)", 1)
		}), "too many instances"},
		{"grammar without intro", edit(func(f *File) { f.Grammar = strings.Replace(f.Grammar, `"intro"`, `"intra"`, 1) }), "intro"},
		{"open brace", edit(func(f *File) { f.Grammar = strings.Replace(f.Grammar, "{o.name} to the", "{o.name to the", 1) }), "not closed"},
		{"unknown symbol", edit(func(f *File) { f.Grammar = strings.Replace(f.Grammar, "#beside#", "#besides#", 1) }), "besides"},
		{"unknown attribute", edit(func(f *File) { f.Grammar = strings.Replace(f.Grammar, "{o.name} from", "{o.colour} from", 1) }), "colour"},
		{"endless symbol", edit(func(f *File) {
			f.Grammar = strings.Replace(f.Grammar, `{"rhs": "[{r.indefinite`, `{"rhs": "#around##around#[{r.indefinite`, 1)
		}), "does not end"},
		{"bad JSON", edit(func(f *File) { f.Grammar = strings.Replace(f.Grammar, `"intro": [`, `"intro": {`, 1) }), "JSON object"},
		{"bad condition", edit(func(f *File) { f.Grammar = strings.Replace(f.Grammar, `"holdsany(a:agent)"`, `"holdsany a"`, 1) }), "condition"},
		{"cut grammar", edit(func(f *File) { f.Grammar = f.Grammar[:len(f.Grammar)-4] }), "grammar, line"},
	} {
		_, err := loadBytes(c.file)
		if errs.CodeOf(err) != errs.Invalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
		if err != nil && len(err.Error()) > 500 {
			t.Errorf("%s: the message has %d bytes", c.name, len(err.Error()))
		}
	}
	if _, err := loadBytes(good); err != nil {
		t.Fatal(err)
	}
	mute := mini{facts: miniWorld}.file(t)
	mute.Grammar, _, _ = strings.Cut(mute.Grammar, "action look")
	if _, err := NewLibrary().Load(mute, Legacy); errs.CodeOf(err) != errs.Invalid || !strings.Contains(err.Error(), "no action") {
		t.Errorf("a game in which nothing can be typed: %v", err)
	}
	if _, err := loadBytes(append([]byte(`{"extra":{"x":[1]},`), good[1:]...)); err != nil {
		t.Errorf("an extra key is refused: %v", err)
	}
}

func TestHugeAndDamagedFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return p
	}
	var z bytes.Buffer
	w, err := gzip.NewWriterLevel(&z, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	chunk := bytes.Repeat([]byte("x"), 1<<20)
	_, _ = w.Write([]byte(`{"pddl_domain":"`))
	for range 12 { // more than a game may have, compressed to little
		_, _ = w.Write(chunk)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		write("huge.tw-pddl.gz", z.Bytes()):              "more than",
		write("cut.tw-pddl.gz", z.Bytes()[:z.Len()/20]):  "cut off",
		write("plain.tw-pddl.gz", []byte("not gzip")):    "gzip",
		filepath.Join(dir, "missing.tw-pddl"):            "cannot be opened",
		write("half.tw-pddl", []byte(`{"grammar": "x"`)): "JSON",
	} {
		if _, err := Open(name, Current); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", filepath.Base(name), err, want)
		}
	}
}

func FuzzPDDL(f *testing.F) {
	f.Add(genDomain)
	f.Add("(define (domain d) (:predicates (p ?x)) (:action a :parameters (?x) :effect (p ?x)))")
	f.Add("(define (problem p) (:objects a - b) (:init (= (c) 0) (x a)) (:goal (exists (?x - b, ?y) (= ?x ?y))))")
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := parseDomain(s); err == nil && len(d.schemas) == 0 {
			t.Error("a domain without actions is accepted")
		}
		if p, err := parseProblem(s); err == nil && !p.goal.isList() {
			t.Error("a problem without a goal is accepted")
		}
	})
}

func FuzzGrammar(f *testing.F) {
	f.Add(genGrammarText())
	f.Add(`grammar :: """{"intro":[{"rhs":"#a(b, c)# {x.name or 'y' + \"z\" | p(x:t)} [{x}|p(x:t)] [x|p(x:t)]","condition":"not_p(x:t)"}]}""";`)
	f.Add("action look { template :: \"look {\"; feedback :: \"]\"; }")
	d, err := parseDomain(genDomain)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, err := parseGrammar(s)
		if err != nil {
			return
		}
		for _, w := range []string{Current, Legacy} {
			_, _ = link(d, g.reword(w), w)
		}
	})
}

func FuzzGameFile(f *testing.F) {
	f.Add(encode(f, mini{facts: miniWorld}.file(f)))
	f.Add([]byte(`{"pddl_domain":"","grammar":"","pddl_problem":"","solvable":true,"walkthrough":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := loadBytes(b)
		if err != nil {
			return
		}
		p := g.Reset()
		for range 5 {
			c := p.Commands()
			if len(c) == 0 {
				return
			}
			if _, err := p.Step(c[len(c)/2]); err != nil {
				return
			}
		}
	})
}
