package auth

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/alexedwards/argon2id"

	"agentrl/internal/errs"
)

// maxWaiting bounds the logins that wait for a hash, so that a flood is refused instead of queued.
const maxWaiting = 64

// hasher makes and checks argon2id hashes, as many at once as there are cores. Safe for concurrent use.
type hasher struct {
	params  argon2id.Params
	slots   chan struct{}
	waiting atomic.Int64
	dummy   string // checked for unknown accounts, so that they take as long as known ones
}

func newHasher(p *argon2id.Params, cores int) (*hasher, error) {
	h := &hasher{params: argon2id.Params{Memory: 19 * 1024, Iterations: 2, Parallelism: 1, SaltLength: 16, KeyLength: 32}}
	if p != nil {
		h.params = *p
	}
	if cores <= 0 {
		cores = runtime.NumCPU()
	}
	h.slots = make(chan struct{}, cores)
	var err error
	h.dummy, err = argon2id.CreateHash("the password of nobody", &h.params)
	return h, err
}

func (h *hasher) enter(ctx context.Context) error {
	if h.waiting.Add(1) > maxWaiting {
		h.waiting.Add(-1)
		return errs.New(errs.RateLimited, "too many sign-ins at once; try again in a moment")
	}
	defer h.waiting.Add(-1)
	select {
	case h.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *hasher) leave() { <-h.slots }

// hash returns the argon2id string of a password.
func (h *hasher) hash(ctx context.Context, password string) (string, error) {
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	defer h.leave()
	return argon2id.CreateHash(password, &h.params)
}

// verify compares a password with a hash; an empty hash costs the same and never matches. stale: the hash was made with
// other parameters and should be made anew.
func (h *hasher) verify(ctx context.Context, password, hash string) (ok, stale bool, err error) {
	if err := h.enter(ctx); err != nil {
		return false, false, err
	}
	defer h.leave()
	known := hash != ""
	if !known {
		hash = h.dummy
	}
	match, params, err := argon2id.CheckHash(password, hash)
	if err != nil {
		return false, false, err
	}
	return known && match, *params != h.params, nil
}
