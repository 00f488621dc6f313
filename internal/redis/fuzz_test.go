package redis_test

import (
	"context"
	"strings"
	"testing"

	"agentrl/internal/errs"
	"agentrl/internal/redis"
)

// No address panics or shows its password, whatever is wrong with it.
func FuzzOpen(f *testing.F) {
	for _, s := range []string{"redis://u:secretword@h:1/0", "rediss://h?skip_verify=x", "unix:///x?db=secretword", "redis://[::1", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, url string) {
		if url == "" {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // only the reading of the address is tried
		_, err := redis.Open(ctx, url, quiet)
		if code := errs.CodeOf(err); code != errs.Invalid && code != errs.Unavailable {
			t.Errorf("%q: %v", url, err)
		}
		if err != nil && strings.Contains(url, ":secretword@") && strings.Contains(err.Error(), "secretword") {
			t.Errorf("%q: %v", url, err)
		}
	})
}
