package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"agentrl/internal/config"
	"agentrl/internal/errs"
)

func load(t *testing.T, args, environ []string) (config.Config, error) {
	t.Helper()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.Register(fs)
	if err := fs.Parse(args); err != nil {
		return config.Config{}, err
	}
	return config.Load(fs, environ)
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c, err := load(t, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Config{Addr: "127.0.0.1:8080", Data: "./agentrl-data", Queues: []string{"default"}, Slots: 1, LogFormat: "text"}
	if !reflect.DeepEqual(c, want) {
		t.Errorf("got %+v", c)
	}
}

func TestFlagsBeatEnvironmentBeatsDefaults(t *testing.T) {
	t.Parallel()
	c, err := load(t, []string{"--slots=3", "--no-worker", "--queues", "gpu, cpu"},
		[]string{"AGENTRL_SLOTS=2", "AGENTRL_THREADS=4", "AGENTRL_MEMORY_LIMIT=2GiB", "AGENTRL_LOG_LEVEL=warn", "AGENTRL_BASE_URL=https://a.example/",
			"AGENTRL_ADDR=", "PATH=/bin", "AGENTRL_TEST_REDIS=x"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Slots != 3 || c.Threads != 4 || c.MemoryLimit != 2<<30 || c.LogLevel != slog.LevelWarn || !c.NoWorker ||
		!reflect.DeepEqual(c.Queues, []string{"gpu", "cpu"}) || c.BaseURL != "https://a.example" || c.Addr != "127.0.0.1:8080" {
		t.Errorf("got %+v", c)
	}
}

func TestOnlyNamedFlags(t *testing.T) {
	t.Parallel()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	config.Register(fs, "data", "threads")
	if fs.Lookup("addr") != nil || fs.Lookup("data") == nil || fs.Lookup("threads") == nil {
		t.Error("other flags than the named ones")
	}
	c, err := config.Load(fs, []string{"AGENTRL_ADDR=127.0.0.1:9"})
	if err != nil || c.Addr != "127.0.0.1:9" {
		t.Errorf("%v, %v", c.Addr, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("an unknown option was registered")
		}
	}()
	config.Register(fs, "no-such")
}

func TestRefuses(t *testing.T) {
	t.Parallel()
	for _, kv := range []string{
		"ADDR=nowhere", "ADDR=127.0.0.1:70000", "ADDR=127.0.0.1:http", "ADDR=127.0.0.1:080", "DATA=  ", "SLOTS=-1", "SLOTS=257", "SLOTS=two", "THREADS=1.5",
		"MEMORY_LIMIT=-1", "MEMORY_LIMIT=8GB", "MEMORY_LIMIT=9999999999TiB", "LOG_LEVEL=loud", "LOG_FORMAT=xml", "QUEUES=a,,b", "QUEUES=a,a", "QUEUES=GPU",
		"QUEUES=" + strings.Repeat("x", 64), "DATABASE_URL=mysql://u:planted@h/d", "REDIS_URL=http://u:planted@h", "REDIS_URL=localhost:6379",
		"BASE_URL=example.org", "BASE_URL=https://example.org/sub", "BASE_URL=https://u@example.org", "NO_WORKER=maybe", "SLOT=1", "NEW=1",
	} {
		_, err := load(t, nil, []string{"AGENTRL_" + kv})
		if errs.CodeOf(err) != errs.Invalid {
			t.Errorf("%s: %v", kv, err)
			continue
		}
		name, _, _ := strings.Cut(kv, "=")
		var e *errs.Error
		if errors.As(err, &e); e.Field != "AGENTRL_"+name {
			t.Errorf("%s: field %q", kv, e.Field)
		}
		if strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: the error shows the secret: %v", kv, err)
		}
	}
	_, err := load(t, nil, []string{"AGENTRL_SLOTS=x", "AGENTRL_ADRR=1"})
	if err == nil || !strings.Contains(err.Error(), "AGENTRL_SLOTS") || !strings.Contains(err.Error(), "AGENTRL_ADRR") {
		t.Errorf("not all problems are told: %v", err)
	}
	if _, err := load(t, []string{"--slots", "x"}, nil); err == nil || !strings.Contains(err.Error(), "allowed are 0 to 256") {
		t.Errorf("flag: %v", err)
	}
}

func TestSecretsAreNeverPrinted(t *testing.T) {
	t.Parallel()
	c, err := load(t, nil, []string{"AGENTRL_DATABASE_URL=postgres://u:planted@h/d", "AGENTRL_REDIS_URL=redis://:planted@h:1/0"})
	if err != nil {
		t.Fatal(err)
	}
	if c.DatabaseURL.Reveal() != "postgres://u:planted@h/d" {
		t.Error("the secret itself is wrong")
	}
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("config", slog.Any("config", c), slog.Any("url", c.DatabaseURL))
	j, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	all := log.String() + string(j) + fmt.Sprintf("%v %+v %#v %s %q %x", c, c, c, c.RedisURL, c.RedisURL, c.RedisURL)
	if strings.Contains(all, "planted") || strings.Contains(all, fmt.Sprintf("%x", "planted")) {
		t.Errorf("a secret is printed: %s", all)
	}
	if strings.Count(log.String(), "[redacted]") != 3 || !strings.Contains(log.String(), `"slots":"1"`) {
		t.Errorf("log line: %s", log.String())
	}
	if config.Secret("").String() != "" {
		t.Error("an empty secret looks set")
	}
}

func TestTableIsComplete(t *testing.T) {
	t.Parallel()
	docs := config.Docs()
	seen := map[string]bool{}
	for _, o := range config.Table() {
		if seen[o.Name] || o.Help == "" || o.Type == "" {
			t.Errorf("option %q is doubled or lacks help or type", o.Name)
		}
		seen[o.Name] = true
		if !strings.Contains(docs, "`--"+o.Name+"` | `"+o.Env()+"`") {
			t.Errorf("%s is not documented", o.Name)
		}
		if o.Secret != (reflect.ValueOf(config.Config{}).FieldByNameFunc(func(f string) bool {
			return strings.EqualFold(f, strings.ReplaceAll(o.Name, "-", ""))
		}).Type() == reflect.TypeFor[config.Secret]()) {
			t.Errorf("%s: type and secret flag disagree", o.Name)
		}
	}
	if n := reflect.TypeFor[config.Config]().NumField(); n != len(seen) {
		t.Errorf("%d fields and %d options", n, len(seen))
	}
	if lines := strings.Count(docs, "\n"); lines != len(seen)+2 {
		t.Errorf("table has %d lines", lines)
	}
}

// Any text in any variable is either refused or gives a value that, written out and read again, is the same.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{"127.0.0.1:8080", "[::1]:0", "a,b", "8GiB", "true", "redis://x", "https://a.b", "", "\xff", "1e9"} {
		for i := range len(config.Table()) {
			f.Add(i, s)
		}
	}
	f.Fuzz(func(t *testing.T, i int, text string) {
		table := config.Table()
		if i < 0 || i >= len(table) {
			return
		}
		fs := pflag.NewFlagSet("fuzz", pflag.ContinueOnError)
		c, err := config.Load(fs, []string{table[i].Env() + "=" + text})
		if err != nil || table[i].Secret {
			return
		}
		again, err := config.Load(fs, []string{table[i].Env() + "=" + c.Text(table[i])})
		if err != nil || !reflect.DeepEqual(c, again) {
			t.Errorf("%s=%q gives %+v and then %+v, %v", table[i].Env(), text, c, again, err)
		}
	})
}
