package nn

import (
	"agentrl/internal/errs"
)

// DecoderOptions sets the width of a Decoder.
type DecoderOptions struct {
	Threads int // 0: GOMAXPROCS
}

// Decoder samples from one weight set. Not safe for concurrent use; several decoders may share a Packed.
type Decoder struct {
	w      *Packed
	pool   *pool
	ws     []*decodeSpace
	logits []float32
	// the call in progress
	caches []*Cache
	ids    [][]int32
	groups [][2]int // ranges of caches, one task each
	one    [][]int32
	task   func(worker, i int)
}

// decodeRows is the number of rows that go through the layers together.
const decodeRows = 96

// decodeSpace is one worker's scratch memory.
type decodeSpace struct {
	x, h, qkv, att, gu, act, scores []float32
	pos                             []int32
	ids                             []int32
	segs                            []decodeSeg
}

// decodeSeg is a run of rows that belong to one cache.
type decodeSeg struct {
	cache    *Cache
	index    int // of the cache in the call
	row, n   int
	complete bool // the sequence's last id is among the rows
}

// NewDecoder prepares workspaces for w. Close releases its goroutines.
func NewDecoder(w *Packed, o DecoderOptions) *Decoder {
	d := &Decoder{w: w, pool: newPool(o.Threads)}
	c := w.cfg
	for range d.pool.width {
		d.ws = append(d.ws, &decodeSpace{
			x: make([]float32, decodeRows*c.Dim), h: make([]float32, decodeRows*c.Dim),
			qkv: make([]float32, decodeRows*c.QKVDim()), att: make([]float32, decodeRows*c.Dim),
			gu: make([]float32, decodeRows*2*c.FFN), act: make([]float32, decodeRows*c.FFN),
		})
	}
	d.task = d.runGroup
	return d
}

// Weights returns the weight set the decoder samples from.
func (d *Decoder) Weights() *Packed { return d.w }

// Close stops the decoder's workers; idempotent.
func (d *Decoder) Close() { d.pool.close() }

// Prefill appends ids to the cache and returns the logits [V] after the last one; valid until the next call.
func (d *Decoder) Prefill(c *Cache, ids []int32) ([]float32, error) {
	return d.Extend([]*Cache{c}, [][]int32{ids})
}

// Step appends one token to each cache and returns the logits [b, V]; valid until the next call.
func (d *Decoder) Step(caches []*Cache, ids []int32) ([]float32, error) {
	if len(ids) != len(caches) {
		return nil, errs.New(errs.Invalid, "%d tokens for %d caches", len(ids), len(caches))
	}
	d.one = d.one[:0]
	for i := range ids {
		d.one = append(d.one, ids[i:i+1])
	}
	return d.Extend(caches, d.one)
}

// Extend appends ids[i] to caches[i], prompts and single tokens mixed, and returns the logits [b, V] after the last
// token of each; valid until the next call. No cache may appear twice. After an error the caches are unchanged.
func (d *Decoder) Extend(caches []*Cache, ids [][]int32) ([]float32, error) {
	if err := d.check(caches, ids); err != nil {
		return nil, err
	}
	v := d.w.cfg.Vocab
	if need := len(caches) * v; cap(d.logits) < need {
		d.logits = make([]float32, need)
	}
	d.logits = d.logits[:len(caches)*v]
	d.caches, d.ids = caches, ids
	d.split()
	d.pool.run(len(d.groups), d.task)
	d.caches, d.ids = nil, nil
	return d.logits, nil
}

func (d *Decoder) check(caches []*Cache, ids [][]int32) error {
	if len(caches) != len(ids) {
		return errs.New(errs.Invalid, "%d token lists for %d caches", len(ids), len(caches))
	}
	cfg := d.w.cfg
	for i, c := range caches {
		switch {
		case c == nil || c.w != d.w:
			return errs.New(errs.Invalid, "cache %d was filled under other weights", i)
		case len(ids[i]) == 0:
			return errs.New(errs.Invalid, "sequence %d has no tokens to append", i)
		case c.n+len(ids[i]) > cfg.Context:
			return errs.New(errs.Invalid, "sequence %d would have %d tokens; the context holds %d", i, c.n+len(ids[i]), cfg.Context)
		}
		for _, id := range ids[i] {
			if id < 0 || int(id) >= cfg.Vocab {
				return errs.New(errs.Invalid, "token id %d is outside 0 to %d", id, cfg.Vocab-1)
			}
		}
	}
	for i, c := range caches {
		for _, o := range caches[:i] {
			if o == c {
				return errs.New(errs.Invalid, "cache %d appears twice", i)
			}
		}
	}
	for i, c := range caches {
		c.grow(c.n + len(ids[i]))
	}
	return nil
}

// split cuts the caches into one range per worker with about equally many rows.
func (d *Decoder) split() {
	total := 0
	for _, s := range d.ids {
		total += len(s)
	}
	d.groups = d.groups[:0]
	share := (total + d.pool.width - 1) / d.pool.width
	lo, rows := 0, 0
	for i, s := range d.ids {
		rows += len(s)
		if rows >= share || i == len(d.ids)-1 {
			d.groups = append(d.groups, [2]int{lo, i + 1})
			lo, rows = i+1, 0
		}
	}
}

// runGroup takes the sequences of a group through the model in chunks of at most decodeRows rows.
func (d *Decoder) runGroup(worker, g int) {
	ws := d.ws[worker]
	at := 0 // ids of the current sequence already done
	for i := d.groups[g][0]; i < d.groups[g][1]; {
		ws.segs, ws.ids, ws.pos = ws.segs[:0], ws.ids[:0], ws.pos[:0]
		for i < d.groups[g][1] && len(ws.ids) < decodeRows {
			n := min(len(d.ids[i])-at, decodeRows-len(ws.ids))
			c := d.caches[i]
			last := at+n == len(d.ids[i])
			ws.segs = append(ws.segs, decodeSeg{c, i, len(ws.ids), n, last})
			for j := range n {
				ws.pos = append(ws.pos, int32(c.n+j))
			}
			ws.ids = append(ws.ids, d.ids[i][at:at+n]...)
			at += n
			if last {
				i, at = i+1, 0
			}
		}
		d.forward(ws)
		for _, s := range ws.segs {
			s.cache.n += s.n
		}
	}
}

// forward computes one chunk; the caches take its keys and values but keep their length.
func (d *Decoder) forward(ws *decodeSpace) {
	p, c := d.w, d.w.cfg
	n := len(ws.ids)
	w, dim := c.QKVDim(), c.Dim
	p.embedRows(ws.x, ws.ids)
	for l := range c.Layers {
		p.preAttention(l, ws.qkv, ws.x, ws.h, nil, ws.pos, n)
		for _, s := range ws.segs {
			for j := range s.n {
				s.cache.put(l, s.cache.n+j, ws.qkv[(s.row+j)*w+dim:][:2*c.KVDim()])
			}
			d.attention(ws, l, s)
		}
		p.postAttention(l, ws.x, ws.x, ws.x, ws.att, ws.gu, ws.h, ws.act, nil, n)
	}
	m := 0
	for _, s := range ws.segs {
		if s.complete {
			last := ws.x[(s.row+s.n-1)*dim:][:dim]
			normRow(p.kn, ws.h[m*dim:][:dim], last, p.norm, c.NormEps)
			m++
		}
	}
	if m == 0 {
		return
	}
	// The completed sequences of a chunk are neighbours, so their logits are too.
	first := ws.segs[0].index
	p.kn.Mul(m, c.Vocab, dim, ws.h, dim, 1, p.head, dim, 0, d.logits[first*c.Vocab:], c.Vocab, false)
}

// attention computes one segment of layer l.
func (d *Decoder) attention(ws *decodeSpace, l int, s decodeSeg) {
	p, c := d.w, d.w.cfg
	hd, w, group := c.HeadDim(), c.QKVDim(), c.Heads/c.KVHeads
	if need := attnRows * pad16(s.cache.n+s.n); len(ws.scores) < need {
		ws.scores = make([]float32, 2*need)
	}
	for g := range c.KVHeads {
		k, v := s.cache.k[l*c.KVHeads+g], s.cache.v[l*c.KVHeads+g]
		if s.n == 1 && group <= attnRows { // all heads of the group are rows of one product
			at := g * group * hd
			p.attend(group, ws.qkv[s.row*w+at:], hd, k, v, s.cache.cap, s.cache.n+1, 0, ws.scores, ws.att[s.row*c.Dim+at:], hd,
				nil, nil, 0)
			continue
		}
		for h := g * group; h < (g+1)*group; h++ {
			for r := 0; r < s.n; r += attnRows {
				p.attend(min(attnRows, s.n-r), ws.qkv[(s.row+r)*w+h*hd:], w, k, v, s.cache.cap, s.cache.n+r+1, 1, ws.scores,
					ws.att[(s.row+r)*c.Dim+h*hd:], c.Dim, nil, nil, 0)
			}
		}
	}
}
