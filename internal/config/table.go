package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// Table lists all options in the order in which they are documented.
func Table() []Option {
	return []Option{
		{Name: "addr", Default: "127.0.0.1:8080", Type: "text",
			Help: "address that the web server listens on, HOST:PORT",
			set:  func(c *Config, s string) error { c.Addr = s; return checkAddr(s) },
			get:  func(c Config) string { return c.Addr }},
		{Name: "data", Default: "./agentrl-data", Type: "text",
			Help: "directory for the SQLite database, checkpoints and other files",
			set:  func(c *Config, s string) error { c.Data = s; return notEmpty(s, "a directory") },
			get:  func(c Config) string { return c.Data }},
		{Name: "database-url", Type: "text", Secret: true,
			Help: "postgres://USER:PASSWORD@HOST/NAME or the path of a SQLite file; empty: SQLite in the data directory",
			set:  func(c *Config, s string) error { c.DatabaseURL = Secret(s); return checkDatabase(s) },
			get:  func(c Config) string { return c.DatabaseURL.Reveal() }},
		{Name: "redis-url", Type: "text", Secret: true,
			Help: "redis://USER:PASSWORD@HOST:PORT/DB, rediss:// for TLS or unix://; empty: inside this process",
			set: func(c *Config, s string) error {
				c.RedisURL = Secret(s)
				return checkURL(s, "redis", "rediss", "unix")
			},
			get: func(c Config) string { return c.RedisURL.Reveal() }},
		{Name: "base-url", Type: "text",
			Help: "address by which browsers reach the server, such as https://agentrl.example.org; empty: http:// and the listen address",
			set:  func(c *Config, s string) error { c.BaseURL = strings.TrimSuffix(s, "/"); return checkBase(s) },
			get:  func(c Config) string { return c.BaseURL }},
		{Name: "queues", Default: "default", Type: "list",
			Help: "queues that the worker takes runs from, separated by commas",
			set:  func(c *Config, s string) (err error) { c.Queues, err = parseQueues(s); return err },
			get:  func(c Config) string { return strings.Join(c.Queues, ",") }},
		{Name: "slots", Default: "1", Type: "number",
			Help: "runs that the worker executes at once; 0 in serve: none",
			set:  func(c *Config, s string) (err error) { c.Slots, err = parseInt(s, 0, 256); return err },
			get:  func(c Config) string { return strconv.Itoa(c.Slots) }},
		{Name: "threads", Default: "0", Type: "number",
			Help: "threads of the native engine per run; 0: all cores",
			set:  func(c *Config, s string) (err error) { c.Threads, err = parseInt(s, 0, 1024); return err },
			get:  func(c Config) string { return strconv.Itoa(c.Threads) }},
		{Name: "memory-limit", Default: "0", Type: "size",
			Help: "memory that the process tries to stay below, such as 8GiB; 0: no limit",
			set:  func(c *Config, s string) (err error) { c.MemoryLimit, err = parseSize(s); return err },
			get:  func(c Config) string { return strconv.FormatInt(c.MemoryLimit, 10) }},
		{Name: "log-level", Default: "info", Type: "text",
			Help: "least level of log lines: debug, info, warn or error",
			set:  func(c *Config, s string) (err error) { c.LogLevel, err = parseLevel(s); return err },
			get:  func(c Config) string { return strings.ToLower(c.LogLevel.String()) }},
		{Name: "log-format", Default: "text", Type: "text",
			Help: "form of log lines: text or json",
			set:  func(c *Config, s string) error { c.LogFormat = s; return oneOf(s, "text", "json") },
			get:  func(c Config) string { return c.LogFormat }},
		{Name: "alfworld-data", Type: "text",
			Help: "directory with downloaded ALFWorld games; empty: generated games only",
			set:  func(c *Config, s string) error { c.AlfworldData = s; return nil },
			get:  func(c Config) string { return c.AlfworldData }},
		{Name: "allow-insecure-bind", Default: "false", Type: "bool",
			Help: "listen on an address that other machines reach although the server speaks no TLS itself",
			set:  func(c *Config, s string) (err error) { c.AllowInsecureBind, err = parseBool(s); return err },
			get:  func(c Config) string { return strconv.FormatBool(c.AllowInsecureBind) }},
		{Name: "no-worker", Default: "false", Type: "bool",
			Help: "serve pages without a worker inside; runs wait for `agentrl worker`",
			set:  func(c *Config, s string) (err error) { c.NoWorker, err = parseBool(s); return err },
			get:  func(c Config) string { return strconv.FormatBool(c.NoWorker) }},
	}
}

var queueName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

func notEmpty(s, what string) error {
	if strings.TrimSpace(s) == "" {
		return fmt.Errorf("must name %s", what)
	}
	return nil
}

func oneOf(s string, allowed ...string) error {
	for _, a := range allowed {
		if s == a {
			return nil
		}
	}
	return fmt.Errorf("is %q; allowed are %s", s, strings.Join(allowed, ", "))
}

func checkAddr(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return fmt.Errorf("is %q; it must be HOST:PORT such as 127.0.0.1:8080", s)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("has the port %q; allowed are 0 to 65535", port)
	} else if strconv.FormatUint(n, 10) != port {
		return fmt.Errorf("has the port %q; write it as %d", port, n)
	}
	return nil
}

// checkURL never repeats the text, which may hold a password.
func checkURL(s string, schemes ...string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" && u.Path == "" || !contains(schemes, u.Scheme) {
		return fmt.Errorf("is not an address that begins with %s://", strings.Join(schemes, ":// or "))
	}
	return nil
}

func checkDatabase(s string) error {
	if !strings.Contains(s, "://") {
		return nil
	}
	return checkURL(s, "postgres", "postgresql")
}

func checkBase(s string) error {
	if s == "" {
		return nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || !contains([]string{"http", "https"}, u.Scheme) || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("is %q; it must be http:// or https:// and a host, without a path", s)
	}
	return nil
}

func contains(list []string, s string) bool { return oneOf(s, list...) == nil }

func parseQueues(s string) ([]string, error) {
	var out []string
	for q := range strings.SplitSeq(s, ",") {
		q = strings.TrimSpace(q)
		if !queueName.MatchString(q) {
			return nil, fmt.Errorf("has the queue %q; a name is 1 to 63 small letters, digits, dots, dashes and underscores", q)
		}
		if contains(out, q) {
			return nil, fmt.Errorf("names the queue %q twice", q)
		}
		out = append(out, q)
	}
	return out, nil
}

func parseInt(s string, least, most int) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("is %q; allowed are %d to %d", s, least, most)
	}
	return n, nil
}

func parseBool(s string) (bool, error) {
	b, err := strconv.ParseBool(s)
	if err != nil {
		return false, fmt.Errorf("is %q; allowed are true and false", s)
	}
	return b, nil
}

func parseLevel(s string) (slog.Level, error) {
	switch s {
	case "debug":
		return slog.LevelDebug, nil
	case "info":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, oneOf(s, "debug", "info", "warn", "error")
}

// parseSize reads a number of bytes with an optional unit of 1024 (KiB, MiB, GiB, TiB).
func parseSize(s string) (int64, error) {
	wrong := errors.New("must be a number of bytes such as 8GiB, 512MiB or 0")
	number, shift := strings.TrimSpace(s), 0
	for unit, bits := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40} {
		if rest, ok := strings.CutSuffix(number, unit); ok {
			number, shift = strings.TrimSpace(rest), bits
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<62)>>shift {
		return 0, wrong
	}
	return n << shift, nil
}
