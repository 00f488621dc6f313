package web

import (
	"encoding/base64"
	"math"
	"net/http"
	"strconv"
	"strings"

	"agentrl/internal/errs"
)

// list is the JSON form of every list: Next is the cursor of the next page, empty on the last.
type list[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
	Total *int64 `json:"total,omitempty"` // all that match, where it is known
}

// answerList writes items; a nil slice is an empty list.
func answerList[T any](r *request, items []T, next string, total *int64) error {
	if items == nil {
		items = []T{}
	}
	return r.JSON(http.StatusOK, list[T]{items, next, total})
}

const (
	defaultLimit = 50
	maxLimit     = 200
)

// Limit is the page size of a list.
func (r *request) Limit() (int, error) {
	n, err := r.QueryInt("limit", defaultLimit, 1, maxLimit)
	return int(n), err
}

// Offset reads a cursor made by nextOffset.
func (r *request) Offset() (int, error) {
	c := r.Query("cursor")
	if c == "" {
		return 0, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(c)
	if err == nil {
		if v, ok := strings.CutPrefix(string(b), "o"); ok {
			if n, err := strconv.Atoi(v); err == nil && n >= 0 && n <= 1<<30 {
				return n, nil
			}
		}
	}
	return 0, errs.Field("cursor", "is not a cursor of this list; leave it out to begin at the first page")
}

// nextOffset is the cursor after a page of n items from offset, empty when total is reached.
func nextOffset(offset, n int, total int64) string {
	if n == 0 || int64(offset+n) >= total {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte("o" + strconv.Itoa(offset+n)))
}

// window cuts one page out of a list that is held whole.
func window[T any](r *request, all []T) ([]T, string, *int64, error) {
	limit, err := r.Limit()
	if err != nil {
		return nil, "", nil, err
	}
	off, err := r.Offset()
	if err != nil {
		return nil, "", nil, err
	}
	total := int64(len(all))
	off = min(off, len(all))
	pageOf := all[off:min(off+limit, len(all))]
	return pageOf, nextOffset(off, len(pageOf), total), &total, nil
}

// num is a float that JSON can carry: NaN and infinities become null.
type num float64

// MarshalJSON implements json.Marshaler.
func (n num) MarshalJSON() ([]byte, error) {
	f := float64(n)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, f, 'g', -1, 64), nil
}

// splitList reads a comma-separated query parameter; empty parts are dropped.
func splitList(v string) []string {
	var out []string
	for _, p := range strings.Split(v, ",") {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}
