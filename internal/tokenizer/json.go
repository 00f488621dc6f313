package tokenizer

import (
	"io"

	"agentrl/internal/errs"
)

// Write writes the tokenizer in the tokenizer.json format.
func (t *Tokenizer) Write(w io.Writer) error { return errs.New(errs.Unavailable, "not built yet") }

// Read reads tokenizer.json.
func Read(r io.Reader) (*Tokenizer, error) { return nil, errs.New(errs.Unavailable, "not built yet") }

// ReadFile reads a tokenizer.json file.
func ReadFile(path string) (*Tokenizer, error) {
	return nil, errs.New(errs.Unavailable, "not built yet")
}
