package native

import (
	"testing"

	"agentrl/internal/nn"
)

func TestStoreEvictsTheLeastRecentlyUsed(t *testing.T) {
	t.Parallel()
	e := newEngine(t, nil)
	publish(t, e, 0)
	v, err := e.published(0)
	if err != nil {
		t.Fatal(err)
	}
	d := nn.NewDecoder(v.weights, nn.DecoderOptions{Threads: 1})
	defer d.Close()
	filled := func(ids ...int32) *nn.Cache {
		c := d.NewCache(len(ids))
		if _, err := d.Prefill(c, ids); err != nil {
			t.Fatal(err)
		}
		return c
	}
	ids := []int32{1, 2, 3}
	one := filled(ids...).Bytes()
	s := newKVStore(2*one, 4)
	for _, key := range []string{"a", "b"} {
		s.put(key, v, ids, filled(ids...))
	}
	a := s.take("a", v, append(ids, 4))
	if a == nil || a.Len() != 3 {
		t.Fatal("the cache of a was lost")
	}
	s.put("a", v, ids, a)
	s.put("c", v, ids, filled(ids...))
	if b := s.take("b", v, append(ids, 4)); b != nil {
		t.Error("b was used last of all and must have been evicted")
	}
	if bytes, entries, _, _ := s.stats(); bytes != 2*one || entries != 2 {
		t.Errorf("%d bytes in %d entries, want %d in 2", bytes, entries, 2*one)
	}
	if s.spare(v) == nil {
		t.Error("the memory of an evicted cache is not used again")
	}
	// The last token's logits are needed, so a full hit is cut by one; another beginning is no hit.
	if c := s.take("a", v, ids); c == nil || c.Len() != 2 {
		t.Error("an equal prompt must be cut by one token")
	}
	if c := s.take("c", v, []int32{9, 2, 3}); c != nil {
		t.Error("a prompt with another beginning hit the cache")
	}
	s.put("d", v, ids, filled(ids...))
	v.released.Store(true)
	s.dropVersion(v)
	if bytes, entries, _, _ := s.stats(); bytes != 0 || entries != 0 || s.spare(v) != nil {
		t.Errorf("%d bytes in %d entries are kept of a released version", bytes, entries)
	}
	s.put("d", v, ids, filled(ids...))
	if _, entries, _, _ := s.stats(); entries != 0 {
		t.Error("a released version was kept again")
	}
}
