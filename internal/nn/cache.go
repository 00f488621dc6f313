package nn

import "agentrl/internal/nn/kernel"

// Cache holds the keys and values of one sequence under one weight set, packed as the kernels want them.
type Cache struct {
	w    *Packed
	n    int
	cap  int         // multiple of 16
	k, v [][]float32 // per layer and key/value head: headDim x cap and cap x headDim, packed
}

// NewCache makes an empty cache with room for capacity tokens; it grows by itself up to the context length.
func (d *Decoder) NewCache(capacity int) *Cache {
	c := &Cache{w: d.w}
	c.grow(max(16, min(capacity, d.w.cfg.Context)))
	return c
}

// Len is the number of tokens in the cache.
func (c *Cache) Len() int { return c.n }

// Truncate forgets all tokens from position n on; the rest stays usable.
func (c *Cache) Truncate(n int) { c.n = max(0, min(c.n, n)) }

// Clone copies a cache, so that several continuations share a prefix.
func (c *Cache) Clone() *Cache {
	o := &Cache{w: c.w, n: c.n, cap: c.cap, k: make([][]float32, len(c.k)), v: make([][]float32, len(c.v))}
	for i := range c.k {
		o.k[i] = append([]float32(nil), c.k[i]...)
		o.v[i] = append([]float32(nil), c.v[i]...)
	}
	return o
}

// Bytes is the memory the cache holds.
func (c *Cache) Bytes() int64 {
	var n int64
	for i := range c.k {
		n += int64(len(c.k[i]) + len(c.v[i]))
	}
	return 4 * n
}

// grow makes room for at least n tokens.
func (c *Cache) grow(n int) {
	if n <= c.cap {
		return
	}
	cfg := c.w.cfg
	hd := cfg.HeadDim()
	size := pad16(max(n, min(2*c.cap, cfg.Context)))
	k, v := make([][]float32, cfg.Layers*cfg.KVHeads), make([][]float32, cfg.Layers*cfg.KVHeads)
	for i := range k {
		k[i] = make([]float32, kernel.PackedLen(hd, size))
		v[i] = make([]float32, kernel.PackedLen(size, hd))
		if c.cap == 0 {
			continue
		}
		copy(k[i], c.k[i])
		for p := 0; p < hd; p += kernel.NR {
			copy(v[i][p*size:], c.v[i][p*c.cap:][:c.cap*kernel.NR])
		}
	}
	c.k, c.v, c.cap = k, v, size
}

// put stores one token's keys and values of layer l at position pos; kv is keys then values.
func (c *Cache) put(l, pos int, kv []float32) {
	cfg := c.w.cfg
	hd := cfg.HeadDim()
	for g := range cfg.KVHeads {
		k, v := c.k[l*cfg.KVHeads+g], c.v[l*cfg.KVHeads+g]
		panel := k[pos/kernel.NR*hd*kernel.NR+pos%kernel.NR:]
		for i, x := range kv[g*hd:][:hd] {
			panel[i*kernel.NR] = x
		}
		src := kv[cfg.KVDim()+g*hd:][:hd]
		for i := 0; i < hd; i += kernel.NR {
			copy(v[(i/kernel.NR*c.cap+pos)*kernel.NR:][:kernel.NR], src[i:])
		}
	}
}
