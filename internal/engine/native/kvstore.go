package native

import (
	"container/list"
	"hash/maphash"
	"slices"
	"sync"

	"agentrl/internal/nn"
)

// kvStore keeps KV caches between turns. An entry belongs to one trajectory and one version, so a cache filled under
// one version is never read under another. A cache in use is not in the store: take hands it over and put brings it
// back. Safe for concurrent use.
type kvStore struct {
	mu      sync.Mutex
	limit   int64
	bytes   int64
	byKey   map[string][]*kvEntry    // of one trajectory, one per version
	byHead  map[headKey]*kvEntry     // opening prompts, shared by the members of a group
	recent  *list.List               // of *kvEntry, most recent first
	free    map[*version][]*nn.Cache // memory to be filled anew under the same version
	maxFree int
	seed    maphash.Seed
	hits    int64
	misses  int64
}

type kvEntry struct {
	key     string // empty for shared openings
	head    headKey
	version *version
	ids     []int32
	cache   *nn.Cache
	bytes   int64
	elem    *list.Element
}

type headKey struct {
	version *version
	hash    uint64
}

func newKVStore(limit int64, maxFree int) *kvStore {
	return &kvStore{
		limit: limit, byKey: map[string][]*kvEntry{}, byHead: map[headKey]*kvEntry{}, recent: list.New(),
		free: map[*version][]*nn.Cache{}, maxFree: maxFree, seed: maphash.MakeSeed(),
	}
}

// take returns the cache kept for a trajectory, cut to the longest common prefix with ids but always short of the last
// token, whose logits are needed. It returns nil when nothing fits.
func (s *kvStore) take(key string, v *version, ids []int32) *nn.Cache {
	if key == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.byKey[key] {
		if e.version != v {
			continue
		}
		s.remove(e)
		n := min(commonPrefix(e.ids, ids), len(ids)-1)
		if n == 0 {
			s.recycle(e.version, e.cache)
			break
		}
		s.hits++
		e.cache.Truncate(n)
		return e.cache
	}
	s.misses++
	return nil
}

// put keeps the cache of a trajectory; ids are the tokens in it.
func (s *kvStore) put(key string, v *version, ids []int32, cache *nn.Cache) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key == "" || v.released.Load() || len(ids) == 0 {
		s.recycle(v, cache)
		return
	}
	for _, e := range s.byKey[key] {
		if e.version == v {
			s.remove(e)
			s.recycle(e.version, e.cache)
			break
		}
	}
	e := &kvEntry{key: key, version: v, ids: ids, cache: cache, bytes: cache.Bytes()}
	s.byKey[key] = append(s.byKey[key], e)
	s.insert(e)
}

// head returns a copy of the cache of an opening prompt that was filled before, cut short of its last token.
func (s *kvStore) head(k headKey, ids []int32) *nn.Cache {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byHead[k]
	if e == nil || !slices.Equal(e.ids, ids) {
		return nil
	}
	s.recent.MoveToFront(e.elem)
	c := e.cache.Clone()
	c.Truncate(len(ids) - 1)
	s.hits++
	return c
}

// putHead keeps a copy of a cache that holds exactly ids.
func (s *kvStore) putHead(k headKey, ids []int32, cache *nn.Cache) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.version.released.Load() || s.byHead[k] != nil {
		return
	}
	c := cache.Clone()
	e := &kvEntry{head: k, version: k.version, ids: ids, cache: c, bytes: c.Bytes()}
	s.byHead[k] = e
	s.insert(e)
}

func (s *kvStore) headKey(v *version, ids []int32) headKey {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, id := range ids {
		_, _ = h.Write([]byte{byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}) // never fails
	}
	return headKey{v, h.Sum64()}
}

// spare returns an unused cache to be filled anew, or nil.
func (s *kvStore) spare(v *version) *nn.Cache {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.free[v]
	if len(list) == 0 {
		return nil
	}
	c := list[len(list)-1]
	s.free[v] = list[:len(list)-1]
	return c
}

// discard takes back a cache whose content is no longer needed.
func (s *kvStore) discard(v *version, c *nn.Cache) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recycle(v, c)
}

func (s *kvStore) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range slices.Clone(s.byKey[key]) {
		s.remove(e)
		s.recycle(e.version, e.cache)
	}
}

func (s *kvStore) dropVersion(v *version) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for el := s.recent.Front(); el != nil; {
		next := el.Next()
		if e := el.Value.(*kvEntry); e.version == v {
			s.remove(e)
			s.recycle(e.version, e.cache)
		}
		el = next
	}
	delete(s.free, v)
}

func (s *kvStore) stats() (bytes int64, entries int, hits, misses int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes, s.recent.Len(), s.hits, s.misses
}

func (s *kvStore) insert(e *kvEntry) {
	e.elem = s.recent.PushFront(e)
	s.bytes += e.bytes
	for s.bytes > s.limit {
		old := s.recent.Back().Value.(*kvEntry)
		s.remove(old)
		s.recycle(old.version, old.cache)
	}
}

func (s *kvStore) remove(e *kvEntry) {
	s.recent.Remove(e.elem)
	s.bytes -= e.bytes
	if e.key == "" {
		delete(s.byHead, e.head)
		return
	}
	list := s.byKey[e.key]
	list = slices.DeleteFunc(list, func(x *kvEntry) bool { return x == e })
	if len(list) == 0 {
		delete(s.byKey, e.key)
	} else {
		s.byKey[e.key] = list
	}
}

func (s *kvStore) recycle(v *version, c *nn.Cache) {
	if c != nil && !v.released.Load() && len(s.free[v]) < s.maxFree {
		c.Truncate(0)
		s.free[v] = append(s.free[v], c)
	}
}

func commonPrefix(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
