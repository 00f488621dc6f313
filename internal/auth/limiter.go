package auth

import (
	"slices"
	"sync"
	"time"
)

const (
	limiterKeys  = 20_000           // accounts and addresses remembered
	limiterReset = time.Hour        // after so long without a failure all is forgotten
	accountFree  = 5                // failures of an account before it has to wait
	accountMost  = 30 * time.Second // short, because strangers can cause it
	addressFree  = 20
	addressMost  = 15 * time.Minute
)

// limiter makes repeated failures wait, twice as long each time. Memory is bounded. Safe for concurrent use.
type limiter struct {
	mu   sync.Mutex
	keys map[string]*strikes
	now  func() time.Time
}

type strikes struct {
	count int
	last  time.Time
	until time.Time
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{keys: map[string]*strikes{}, now: now}
}

// attempt counts a try as failed before it is made, so that tries at the same moment count too, and returns how long to
// wait instead if it may not be made now. A success is told with forget.
func (l *limiter) attempt(key string, free int, most time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	s := l.keys[key]
	if s == nil || now.Sub(s.last) > limiterReset {
		if s == nil && len(l.keys) >= limiterKeys {
			l.shrink(now)
		}
		s = &strikes{}
		l.keys[key] = s
	}
	if wait := s.until.Sub(now); wait > 0 {
		return wait
	}
	s.count++
	s.last = now
	if over := s.count - free; over >= 0 {
		s.until = now.Add(min(most, time.Second<<min(over, 20)))
	}
	return 0
}

// forget removes a key, or takes one try back when others of the key may have failed.
func (l *limiter) forget(key string) {
	l.mu.Lock()
	delete(l.keys, key)
	l.mu.Unlock()
}

func (l *limiter) takeBack(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.keys[key]; s != nil {
		s.count = max(0, s.count-1)
		s.until = time.Time{}
	}
}

// prune forgets what is old.
func (l *limiter) prune() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	for k, s := range l.keys {
		if now.Sub(s.last) > limiterReset {
			delete(l.keys, k)
		}
	}
}

// shrink makes room: the old ones go first, then those with the fewest failures.
func (l *limiter) shrink(now time.Time) {
	type kv struct {
		key string
		s   *strikes
	}
	list := make([]kv, 0, len(l.keys))
	for k, s := range l.keys {
		if now.Sub(s.last) > limiterReset {
			delete(l.keys, k)
			continue
		}
		list = append(list, kv{k, s})
	}
	slices.SortFunc(list, func(a, b kv) int {
		if a.s.count != b.s.count {
			return a.s.count - b.s.count
		}
		return a.s.last.Compare(b.s.last)
	})
	for i := 0; i < len(list) && len(l.keys) > limiterKeys*9/10; i++ {
		delete(l.keys, list[i].key)
	}
}
