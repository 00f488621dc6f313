// Package config is the one table of options: flags, environment variables, defaults, checks and documentation.
package config

import (
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"agentrl/internal/errs"
)

const (
	envPrefix  = "AGENTRL_"
	testPrefix = "AGENTRL_TEST_" // read by tests only, so never an unknown option
)

// Config is every option's value.
type Config struct {
	Addr              string // host:port
	Data              string // directory
	DatabaseURL       Secret // empty: SQLite below Data
	RedisURL          Secret // empty: embedded
	BaseURL           string // empty: http://Addr
	Queues            []string
	Slots             int
	Threads           int   // 0: all cores
	MemoryLimit       int64 // bytes, 0: none
	LogLevel          slog.Level
	LogFormat         string // text | json
	AlfworldData      string // directory, empty: generated games only
	AllowInsecureBind bool
	NoWorker          bool
}

// Option is one line of the table.
type Option struct {
	Name    string // flag without dashes
	Default string
	Type    string // shown in the help: text, number, size, list, or bool for a switch
	Help    string
	Secret  bool

	set func(c *Config, text string) error // parses and checks
	get func(c Config) string
}

// Env returns the option's environment variable.
func (o Option) Env() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(o.Name, "-", "_"))
}

// flag makes an Option a pflag.Value.
type flag struct {
	opt  Option
	text string
}

func (f *flag) String() string { return f.text }
func (f *flag) Type() string   { return f.opt.Type }

func (f *flag) Set(text string) error {
	var c Config
	if err := f.opt.set(&c, text); err != nil {
		return err
	}
	f.text = text
	return nil
}

// Register adds the named options, or all, as flags to a command. A name that is not in the table is the program's
// mistake and panics.
func Register(fs *pflag.FlagSet, names ...string) {
	for _, n := range names {
		if !slices.ContainsFunc(Table(), func(o Option) bool { return o.Name == n }) {
			panic("config: there is no option " + n)
		}
	}
	for _, o := range Table() {
		if len(names) > 0 && !slices.Contains(names, o.Name) {
			continue
		}
		f := fs.VarPF(&flag{opt: o, text: o.Default}, o.Name, "", o.Help+" ("+o.Env()+")")
		if o.Type == "bool" {
			f.NoOptDefVal = "true"
		}
	}
}

// Load returns the options: flags that were given on fs, else the environment, which is os.Environ(), else defaults. A
// variable that begins with AGENTRL_ and names no option is an error, because it is a mistyped one. All errors are told
// at once; each is an *errs.Error with Invalid.
func Load(fs *pflag.FlagSet, environ []string) (Config, error) {
	table := Table()
	var problems []error
	env := map[string]string{}
	for _, kv := range environ {
		k, v, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(k, envPrefix) || strings.HasPrefix(k, testPrefix) {
			continue
		}
		if !slices.ContainsFunc(table, func(o Option) bool { return o.Env() == k }) {
			problems = append(problems, errs.Field(k, "is not a setting; known are %s", strings.Join(variables(table), ", ")))
			continue
		}
		env[k] = v
	}
	var c Config
	for _, o := range table {
		text, from := o.Default, "--"+o.Name
		if v, ok := env[o.Env()]; ok && v != "" {
			text, from = v, o.Env()
		}
		if f := fs.Lookup(o.Name); f != nil && f.Changed {
			text, from = f.Value.String(), "--"+o.Name
		}
		if err := o.set(&c, text); err != nil {
			problems = append(problems, errs.Field(from, "%s", err.Error()))
		}
	}
	if len(problems) > 0 {
		return Config{}, errors.Join(problems...)
	}
	return c, nil
}

func variables(table []Option) []string {
	var out []string
	for _, o := range table {
		out = append(out, o.Env())
	}
	slices.Sort(out)
	return out
}

// LogValue shows every option by name, secrets redacted.
func (c Config) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, o := range Table() {
		attrs = append(attrs, slog.String(o.Name, c.Text(o)))
	}
	return slog.GroupValue(attrs...)
}

// Text returns an option's value as it would be given, or a placeholder for a secret.
func (c Config) Text(o Option) string {
	text := o.get(c)
	if o.Secret {
		return Secret(text).String()
	}
	return text
}

// Docs returns the table as Markdown, as the README shows it.
func Docs() string {
	var b strings.Builder
	b.WriteString("| flag | environment | default | meaning |\n|---|---|---|---|\n")
	for _, o := range Table() {
		def := "-"
		if o.Default != "" && o.Type != "bool" {
			def = "`" + o.Default + "`"
		}
		b.WriteString("| `--" + o.Name + "` | `" + o.Env() + "` | " + def + " | " + strings.ReplaceAll(o.Help, "|", "\\|") + " |\n")
	}
	return b.String()
}
