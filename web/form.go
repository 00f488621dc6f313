package web

import (
	"math"
	"net/url"
	"strconv"
	"strings"

	"agentrl/internal/errs"
)

// formData is a posted form with the errors found so far, by field, so that a page can show them all at once.
type formData struct {
	Values url.Values
	Errors map[string]string
}

// Form parses the posted form once. Its error is the request's: a broken or oversized body.
func (r *request) Form() (*formData, error) {
	if r.form != nil {
		return r.form, nil
	}
	q := r.c.Request()
	if err := q.ParseForm(); err != nil {
		return nil, bodyError(err)
	}
	r.form = &formData{Values: q.PostForm, Errors: map[string]string{}}
	return r.form, nil
}

// Text is a trimmed field.
func (f *formData) Text(name string) string { return strings.TrimSpace(f.Values.Get(name)) }

// Raw is a field as it came, for passwords and YAML.
func (f *formData) Raw(name string) string { return f.Values.Get(name) }

// Bool is a checkbox.
func (f *formData) Bool(name string) bool {
	switch f.Values.Get(name) {
	case "", "0", "false", "off":
		return false
	}
	return true
}

// Fail records an error of a field.
func (f *formData) Fail(name, message string) {
	if _, ok := f.Errors[name]; !ok {
		f.Errors[name] = message
	}
}

// FailErr records a validation error at its field and reports whether it was one; other errors are the caller's.
func (f *formData) FailErr(err error) bool {
	e, ok := safe(err)
	if !ok || (e.Code != errs.Invalid && e.Code != errs.Conflict) {
		return false
	}
	f.Fail(e.Field, e.Message)
	return true
}

// OK reports whether no field has failed.
func (f *formData) OK() bool { return len(f.Errors) == 0 }

// Required is a trimmed field that may not be empty.
func (f *formData) Required(name, what string) string {
	v := f.Text(name)
	if v == "" {
		f.Fail(name, what+" is missing")
	}
	return v
}

// Int is a whole number in [lo, hi]; def when the field is empty.
func (f *formData) Int(name string, def, lo, hi int64) int64 {
	v := f.Text(name)
	if v == "" {
		return def
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < lo || n > hi {
		f.Fail(name, "must be a whole number from "+strconv.FormatInt(lo, 10)+" to "+strconv.FormatInt(hi, 10))
		return def
	}
	return n
}

// Float is a finite number in [lo, hi]; def when the field is empty.
func (f *formData) Float(name string, def, lo, hi float64) float64 {
	v := f.Text(name)
	if v == "" {
		return def
	}
	n, err := strconv.ParseFloat(v, 64)
	if err != nil || math.IsNaN(n) || n < lo || n > hi {
		f.Fail(name, "must be a number from "+strconv.FormatFloat(lo, 'g', -1, 64)+" to "+strconv.FormatFloat(hi, 'g', -1, 64))
		return def
	}
	return n
}
