package nn

import (
	"math"

	"agentrl/internal/nn/kernel"
)

// tally sums what the loss reports, in the order of the batch.
type tally struct {
	tokens, clipped, correct        int
	loss, entropy, kl, ratio, worst float64
}

type rowResult struct {
	logp             float32
	loss             float64
	entropy, kl      float64
	ratio            float64
	clipped, correct bool
}

func (s *tally) report(out *LossOutput) {
	out.Loss, out.Tokens = s.loss, s.tokens
	if s.tokens == 0 {
		return
	}
	n := float64(s.tokens)
	out.Entropy, out.KL, out.RatioMean, out.RatioMax = s.entropy/n, s.kl/n, s.ratio/n, s.worst
	out.ClipFraction, out.Correct = float64(s.clipped)/n, float64(s.correct)/n
}

// headSpace holds a block of logits and what belongs to it.
type headSpace struct {
	rows              int
	results           []rowResult
	logits, hid, hidP []float32
	rstd              []float32
}

// headBlock is the number of rows whose logits exist at one time: about 4 MB of them.
func headBlock(c Config) int { return min(max((1<<20)/c.Vocab, 48), 1024) }

func (t *Trainer) headSpace() *headSpace {
	h := &t.headWork
	if h.rows == 0 {
		h.rows = headBlock(t.cfg)
		h.results = make([]rowResult, h.rows)
		h.logits = make([]float32, h.rows*t.cfg.Vocab)
		h.hid = make([]float32, h.rows*t.cfg.Dim)
		h.hidP = make([]float32, kernel.PackedLen(h.rows, t.cfg.Dim))
		h.rstd = make([]float32, h.rows)
	}
	return h
}

// head computes logits, log-probs and, if sum is given, the loss and its gradient with respect to the last residual
// stream, the final gain and the embedding. Only rows with a target are computed.
func (t *Trainer) head(w *Packed, loss Loss, batch []Datum, scales []float64, logprobs [][]float32, sum *tally) {
	h, s := t.headSpace(), &t.tasks
	s.w, s.loss, s.batch, s.scales, s.train = w, loss, batch, scales, sum != nil
	d := t.cfg.Dim
	if s.train {
		clear(t.act.dx[:len(t.mb.ids)*d])
	}
	for lo := 0; lo < len(t.mb.rows); lo += h.rows {
		s.lo, s.n = lo, min(h.rows, len(t.mb.rows)-lo)
		t.pool.run(chunks(s.n), s.headRows)
		if s.train {
			t.addGain(t.model.lay.norm, chunks(s.n))
			t.pool.run((t.cfg.Vocab+chunkRows-1)/chunkRows, s.headGrad)
		}
		for i, r := range h.results[:s.n] {
			row := t.mb.rows[lo+i]
			logprobs[row.datum][row.at] = r.logp
			if s.train {
				sum.add(r)
			}
		}
	}
	s.batch, s.scales = nil, nil
}

func (s *tally) add(r rowResult) {
	s.tokens++
	s.loss += r.loss
	s.entropy += r.entropy
	s.kl += r.kl
	s.ratio += r.ratio
	s.worst = max(s.worst, r.ratio)
	if r.clipped {
		s.clipped++
	}
	if r.correct {
		s.correct++
	}
}

// headRows computes one chunk of the block: logits, loss, and the gradient down to the residual stream.
func (t *Trainer) headRows(worker, i int) {
	s, h, c, ws := &t.tasks, &t.headWork, t.cfg, t.ws[worker]
	r0, n := chunk(i, s.n)
	d, v := c.Dim, c.Vocab
	hid, logits := h.hid[r0*d:], h.logits[r0*v:]
	x := t.act.x[c.Layers]
	for j := range n {
		row := t.mb.rows[s.lo+r0+j].row
		h.rstd[r0+j] = normRow(t.kn, hid[j*d:][:d], x[row*d:][:d], s.w.norm, c.NormEps)
	}
	t.kn.Mul(n, v, d, hid, d, 1, s.w.head, d, 0, logits, v, false)
	for j := range n {
		h.results[r0+j] = t.lossRow(logits[j*v:][:v], ws.prob, t.mb.rows[s.lo+r0+j])
	}
	if !s.train {
		return
	}
	t.kn.PackNRows(h.hidP, hid, s.n, r0, n, d, d)
	t.kn.Mul(n, d, v, logits, v, 1, t.back.embed, v, 0, ws.dh, d, false)
	gain := t.act.gain[i*d:][:d]
	clear(gain)
	for j := range n {
		row := t.mb.rows[s.lo+r0+j].row
		t.normBack(t.act.dx[row*d:][:d], nil, ws.dh[j*d:][:d], x[row*d:][:d], s.w.norm, h.rstd[r0+j], gain)
	}
}

// headGrad adds the logit gradients of the block to some rows of the embedding's gradient.
func (t *Trainer) headGrad(_, i int) {
	s, h, c := &t.tasks, &t.headWork, t.cfg
	v0 := i * chunkRows
	m := min(chunkRows, c.Vocab-v0)
	t.kn.Mul(m, c.Dim, s.n, h.logits[v0:], 1, c.Vocab, h.hidP, s.n, 0, t.grad[t.model.lay.embed+v0*c.Dim:], c.Dim, true)
}

// lossRow turns a row of logits into its log-prob and, when training, into the gradient of the loss.
func (t *Trainer) lossRow(z, prob []float32, at headRow) rowResult {
	s := &t.tasks
	d := s.batch[at.datum]
	temp := s.loss.temperature()
	if temp != 1 {
		t.kn.ScaleAdd(z, z, z, float32(1/temp), 0)
	}
	target := d.Tokens[at.at]
	m := t.kn.Max(z)
	t.kn.Exp(prob, z, m)
	sum := t.kn.Sum(prob)
	logSum := math.Log(float64(sum))
	logp := float64(z[target]) - float64(m) - logSum
	r := rowResult{logp: float32(logp), correct: z[target] == m, ratio: 1}
	if !s.train {
		return r
	}
	t.kn.ScaleAdd(prob, prob, prob, 1/sum, 0)
	lse := float64(m) + logSum
	r.entropy = lse - float64(t.kn.Dot(prob, z))
	get := func(x []float32) float64 {
		if x == nil {
			return 0
		}
		return float64(x[at.at])
	}
	term := s.loss.token(logp, get(d.OldLogprobs), get(d.RefLogprobs), get(d.Advantages), d.RefLogprobs != nil)
	r.kl, r.ratio, r.clipped = term.kl, term.ratio, term.clipped
	w := float64(d.Weights[at.at]) * s.scales[at.datum]
	r.loss = w * (term.loss - s.loss.EntropyCoef*r.entropy)
	g := w * term.dlogp / temp
	if e := w * s.loss.EntropyCoef / temp; e != 0 {
		t.kn.SoftGrad(z, prob, z, float32(lse-r.entropy))
		t.kn.ScaleAdd(z, z, prob, float32(e), float32(-g))
	} else {
		t.kn.ScaleAdd(z, prob, prob, float32(-g), 0)
	}
	z[target] += float32(g)
	return r
}
