package nn

import "agentrl/internal/nn/kernel"

// chunkRows is the number of rows one task of the row-wise phases takes.
const chunkRows = 96

// taskSet holds the phases as functions made once, and what the current phase works on, so that a step allocates nothing.
type taskSet struct {
	w                                                  *Packed
	layer                                              int
	loss                                               Loss
	batch                                              []Datum
	scales                                             []float64
	lo, n                                              int // rows of the head block
	train                                              bool
	rowsFwd, attnFwd, headRows, headGrad               func(worker, i int)
	rowsBack, attnBack, qkvBack, weightBack, adam, sqr func(worker, i int)
	blocks                                             []gradBlock
	adamParams                                         adamStep
}

func (t *Trainer) bindTasks() {
	s := &t.tasks
	s.rowsFwd, s.attnFwd, s.headRows, s.headGrad = t.rowsFwd, t.attnFwd, t.headRows, t.headGrad
	s.rowsBack, s.attnBack, s.qkvBack, s.weightBack = t.rowsBack, t.attnBack, t.qkvBack, t.weightBack
	s.adam, s.sqr = t.adamChunk, t.sqrChunk
}

// trainSpace is one worker's scratch memory.
type trainSpace struct {
	h, act, dact, dh []float32
	s1, s2           []float32 // score blocks
	kp, vp, kn       []float32 // packed keys and values of a sequence
	dk, dv           []float32
	qp, op           []float32 // packed query and output-gradient blocks
	prob             []float32 // [V]
}

func newTrainSpace(c Config) *trainSpace {
	return &trainSpace{
		h: make([]float32, chunkRows*c.Dim), act: make([]float32, chunkRows*c.FFN),
		dact: make([]float32, chunkRows*c.FFN), dh: make([]float32, chunkRows*c.Dim),
		prob: make([]float32, c.Vocab),
		qp:   make([]float32, kernel.PackedLen(attnRows, c.HeadDim())), op: make([]float32, kernel.PackedLen(attnRows, c.HeadDim())),
	}
}

// ensure makes room for a sequence of n tokens.
func (s *trainSpace) ensure(c Config, n int) {
	pad := pad16(n)
	if len(s.s1) >= attnRows*pad {
		return
	}
	pad = pad16(min(max(2*n, 64), max(c.Context, n)))
	hd := c.HeadDim()
	s.s1, s.s2 = make([]float32, attnRows*pad), make([]float32, attnRows*pad)
	s.kp, s.kn = make([]float32, pad*hd), make([]float32, pad*pad16(hd))
	s.vp = make([]float32, max(pad*hd, pad*pad16(hd)))
	s.dk, s.dv = make([]float32, pad*hd), make([]float32, pad*hd)
}

func chunks(n int) int { return (n + chunkRows - 1) / chunkRows }

// chunk returns the rows of task i among n.
func chunk(i, n int) (r0, rows int) { return i * chunkRows, min(chunkRows, n-i*chunkRows) }

// forward takes the micro-batch through all layers under w.
func (t *Trainer) forward(w *Packed) {
	n := len(t.mb.ids)
	t.act.ensure(t.cfg, n)
	t.tasks.w = w
	for l := range t.cfg.Layers + 1 {
		t.tasks.layer = l
		t.pool.run(chunks(n), t.tasks.rowsFwd)
		if l < t.cfg.Layers {
			t.pool.run(len(t.mb.seqs)*t.cfg.KVHeads, t.tasks.attnFwd)
		}
	}
}

// rowsFwd finishes layer l-1 (or looks up the embeddings) and begins layer l for one chunk of rows.
func (t *Trainer) rowsFwd(worker, i int) {
	w, a, ws, l := t.tasks.w, &t.act, t.ws[worker], t.tasks.layer
	r, n := chunk(i, len(t.mb.ids))
	d, f := t.cfg.Dim, t.cfg.FFN
	x := a.x[l][r*d:]
	if l == 0 {
		w.embedRows(x, t.mb.ids[r:r+n])
	} else {
		w.postAttention(l-1, x, a.xmid[l-1][r*d:], a.x[l-1][r*d:], a.att[l-1][r*d:], a.gu[l-1][r*2*f:], ws.h, ws.act,
			a.rstd2[l-1][r:], n)
	}
	if l < t.cfg.Layers {
		w.preAttention(l, a.qkv[l][r*t.cfg.QKVDim():], x, ws.h, a.rstd1[l][r:], t.mb.pos[r:], n)
	}
}

// attnFwd computes the attention of one sequence and one key/value head.
func (t *Trainer) attnFwd(worker, i int) {
	w, a, ws, l, c := t.tasks.w, &t.act, t.ws[worker], t.tasks.layer, t.cfg
	seq, g := t.mb.seqs[i/c.KVHeads], i%c.KVHeads
	hd, width, heads := c.HeadDim(), c.QKVDim(), c.Heads
	ws.ensure(c, seq.n)
	rows := a.qkv[l][seq.start*width:]
	t.kn.PackT(ws.kp, rows[c.Dim+g*hd:], seq.n, hd, width)
	t.kn.PackN(ws.vp, rows[c.Dim+c.KVDim()+g*hd:], seq.n, hd, width)
	group := heads / c.KVHeads
	for h := g * group; h < (g+1)*group; h++ {
		for r := 0; r < seq.n; r += attnRows {
			at := (seq.start+r)*heads + h
			w.attend(min(attnRows, seq.n-r), rows[r*width+h*hd:], width, ws.kp, ws.vp, seq.n, r+1, 1, ws.s1,
				a.att[l][(seq.start+r)*c.Dim+h*hd:], c.Dim, a.big[l][at:], a.inv[l][at:], heads)
		}
	}
}
