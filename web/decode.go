package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"reflect"
	"sort"
	"strings"
	"unicode/utf8"

	"agentrl/internal/errs"
)

// maxDepth bounds the nesting of JSON bodies.
const maxDepth = 32

// Body reads the whole body within the route's limit.
func (r *request) Body() ([]byte, error) {
	b, err := io.ReadAll(r.c.Request().Body)
	if err != nil {
		return nil, bodyError(err)
	}
	return b, nil
}

// Decode reads a JSON body into v strictly: unknown fields, wrong types, trailing text, deep nesting and broken UTF-8
// are refused with the field's name and what is allowed.
func (r *request) Decode(v any) error {
	if ct := r.c.Request().Header.Get("Content-Type"); ct != "" {
		if m, _, err := mime.ParseMediaType(ct); err != nil || m != "application/json" {
			return errs.New(errs.Invalid, "the content type is %q; this address accepts application/json", clip(ct, 60))
		}
	}
	b, err := r.Body()
	if err != nil {
		return err
	}
	return decodeJSON(b, v)
}

func decodeJSON(b []byte, v any) error {
	if len(bytes.TrimSpace(b)) == 0 {
		return errs.New(errs.Invalid, "the body is empty; a JSON object is expected")
	}
	if !utf8.Valid(b) {
		return errs.New(errs.Invalid, "the body is not valid UTF-8")
	}
	if err := checkDepth(b); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return jsonError(err, v)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errs.New(errs.Invalid, "there is text after the JSON object")
	}
	return nil
}

// checkDepth walks the brackets outside of strings.
func checkDepth(b []byte) error {
	depth, inString, escaped := 0, false, false
	for _, c := range b {
		switch {
		case escaped:
			escaped = false
		case inString:
			switch c {
			case '\\':
				escaped = true
			case '"':
				inString = false
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return errs.New(errs.Invalid, "the JSON is nested too deeply: at most %d levels are accepted", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

func jsonError(err error, v any) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return errs.New(errs.Invalid, "the body is not valid JSON: %s at byte %d", syntax.Error(), syntax.Offset)
	case errors.As(err, &typ):
		want := typeWord(typ.Type)
		if typ.Field == "" {
			return errs.New(errs.Invalid, "the body must be %s, not a JSON %s", want, typ.Value)
		}
		return errs.Field(typ.Field, "must be %s, not a JSON %s", want, typ.Value)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errs.New(errs.Invalid, "the body is not valid JSON: it ends too early")
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		name = strings.Trim(name, `"`)
		return errs.Field(clip(name, 80), "unknown field; allowed at the top level are %s", strings.Join(fieldNames(v), ", "))
	}
	return errs.New(errs.Invalid, "the body could not be read: %s", clip(err.Error(), 200))
}

func typeWord(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number of at least 0"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	case reflect.Pointer:
		return typeWord(t.Elem())
	}
	return fmt.Sprintf("a %s", t)
}

// fieldNames lists the JSON names of a struct behind v.
func fieldNames(v any) []string {
	t := reflect.TypeOf(v)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var out []string
	for i := range t.NumField() {
		if n, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); n != "" && n != "-" {
			out = append(out, n)
		}
	}
	sort.Strings(out)
	return out
}
