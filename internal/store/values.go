package store

import (
	"database/sql"
	"math"
	"strings"
	"time"

	"agentrl/internal/errs"
)

// maxPage bounds every list.
const maxPage = 200

// micros is how times are stored: microseconds since the Unix epoch, 0 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func fromMicros(v int64) time.Time {
	if v == 0 {
		return time.Time{}
	}
	return time.UnixMicro(v).UTC()
}

// number stores not-a-number as NULL, which both dialects read back alike.
func number(v float64) sql.NullFloat64 { return sql.NullFloat64{Float64: v, Valid: !math.IsNaN(v)} }

func fromNumber(v sql.NullFloat64) float64 {
	if !v.Valid {
		return math.NaN()
	}
	return v.Float64
}

// text makes a string that both dialects accept: valid UTF-8 without NUL, which Postgres refuses.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// page checks a list's bounds; a limit of 0 means the largest page.
func page(offset, limit int) (int, int, error) {
	if offset < 0 {
		return 0, 0, errs.Field("offset", "%d is negative", offset)
	}
	if limit < 0 || limit > maxPage {
		return 0, 0, errs.Field("limit", "%d is not between 1 and %d", limit, maxPage)
	}
	if limit == 0 {
		limit = maxPage
	}
	return offset, limit, nil
}

// likePattern makes a pattern for LIKE ... ESCAPE '\' that matches s anywhere, ignoring case.
func likePattern(s string) string {
	r := strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)
	return "%" + r.Replace(strings.ToLower(text(s))) + "%"
}
