package config

import (
	"fmt"
	"log/slog"
)

// redacted is printed for a secret that is set.
const redacted = "[redacted]"

// Secret is text that no format, log or JSON shows.
type Secret string

// Reveal returns the text, for the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

// String returns a placeholder, or nothing when the secret is empty.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// Format answers every verb with the placeholder, %#v and %x too.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue returns the placeholder.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns the placeholder.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
