package nn

// microBatch is a set of sequences laid out one after the other. Only tokens up to the last trained one are computed.
type microBatch struct {
	ids, pos []int32
	seqs     []seqSpan
	rows     []headRow
}

// seqSpan is one sequence's rows.
type seqSpan struct{ start, n int }

// headRow is a row whose next token is a target with non-zero weight.
type headRow struct {
	row, datum, at int // at: position of the target in the datum
}

// pack fills the micro-batch with sequences from lo on and returns the first that did not fit.
func (t *Trainer) pack(batch []Datum, lo int) int {
	m := &t.mb
	m.ids, m.pos, m.seqs, m.rows = m.ids[:0], m.pos[:0], m.seqs[:0], m.rows[:0]
	i := lo
	for ; i < len(batch); i++ {
		d := batch[i]
		n := 0
		for j := len(d.Weights) - 1; j > 0; j-- {
			if d.Weights[j] != 0 {
				n = j
				break
			}
		}
		if n == 0 {
			continue
		}
		if len(m.ids) > 0 && len(m.ids)+n > t.opt.MicroBatchTokens {
			break
		}
		start := len(m.ids)
		m.seqs = append(m.seqs, seqSpan{start, n})
		m.ids = append(m.ids, d.Tokens[:n]...)
		for j := range n {
			m.pos = append(m.pos, int32(j))
			if d.Weights[j+1] != 0 {
				m.rows = append(m.rows, headRow{start + j, i, j + 1})
			}
		}
	}
	return i
}

// activations is what the forward pass keeps for the backward pass, for n tokens.
type activations struct {
	cap                  int
	x                    [][]float32 // layers+1 residual streams [n, D]
	xmid                 [][]float32 // after attention [n, D]
	qkv, att, gu         [][]float32
	rstd1, rstd2         [][]float32
	big, inv             [][]float32 // softmax statistics [n, H]
	dx, dmid, dnext      []float32   // residual gradients [n, D]
	datt, dqkv, dgu      []float32
	actP, h2P, attP, h1P []float32 // packed right-hand sides of the weight gradients
	gain                 []float32 // partial norm-gain gradients [chunks, D]
}

func (a *activations) ensure(c Config, n int) {
	if n <= a.cap {
		return
	}
	n = (n + 255) / 256 * 256
	a.cap = n
	rows := func(count, width int) [][]float32 {
		out := make([][]float32, count)
		for i := range out {
			out[i] = make([]float32, n*width)
		}
		return out
	}
	d, w, f := c.Dim, c.QKVDim(), c.FFN
	a.x, a.xmid, a.qkv = rows(c.Layers+1, d), rows(c.Layers, d), rows(c.Layers, w)
	a.att, a.gu = rows(c.Layers, d), rows(c.Layers, 2*f)
	a.rstd1, a.rstd2 = rows(c.Layers, 1), rows(c.Layers, 1)
	a.big, a.inv = rows(c.Layers, c.Heads), rows(c.Layers, c.Heads)
	a.dx, a.dmid, a.dnext, a.datt = rows(1, d)[0], rows(1, d)[0], rows(1, d)[0], rows(1, d)[0]
	a.dqkv, a.dgu = rows(1, w)[0], rows(1, 2*f)[0]
	a.actP, a.h2P, a.attP, a.h1P = rows(1, pad16(f))[0], rows(1, pad16(d))[0], rows(1, pad16(d))[0], rows(1, pad16(d))[0]
	a.gain = make([]float32, (n/chunkRows+1)*d)
}
