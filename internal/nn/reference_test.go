package nn

import "math"

// The reference here is written independently of the engine: one sequence, one position, one head at a time, in double
// precision, and the formulas as method.md and compute.md state them.

type refModel struct {
	c Config
	p map[string][]float64
}

func newRef(m *Model) *refModel {
	r := &refModel{c: m.cfg, p: map[string][]float64{}}
	for _, p := range m.Params() {
		x := make([]float64, len(p.Data))
		for i, v := range p.Data {
			x[i] = float64(v)
		}
		r.p[p.Name] = x
	}
	return r
}

func refLinear(w, x []float64, out int) []float64 {
	y := make([]float64, out)
	for o := range y {
		for i, v := range x {
			y[o] += w[o*len(x)+i] * v
		}
	}
	return y
}

func (r *refModel) norm(x, g []float64) []float64 {
	s := 0.0
	for _, v := range x {
		s += v * v
	}
	s = 1 / math.Sqrt(s/float64(len(x))+r.c.NormEps)
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v * s * g[i]
	}
	return y
}

func (r *refModel) rope(x []float64, pos int) {
	h := len(x) / 2
	for i := range h {
		th := float64(pos) * math.Pow(r.c.RopeBase, -2*float64(i)/float64(len(x)))
		a, b := x[i], x[i+h]
		x[i], x[i+h] = a*math.Cos(th)-b*math.Sin(th), b*math.Cos(th)+a*math.Sin(th)
	}
}

// logits returns [len(ids)][V].
func (r *refModel) logits(ids []int32) [][]float64 {
	c := r.c
	hd, kv := c.HeadDim(), c.KVDim()
	x := make([][]float64, len(ids))
	for t, id := range ids {
		x[t] = append([]float64(nil), r.p["model.embed_tokens.weight"][int(id)*c.Dim:][:c.Dim]...)
	}
	for l := range c.Layers {
		w := func(s string) []float64 { return r.p["model.layers."+string(rune('0'+l))+"."+s+".weight"] }
		var q, k, v [][]float64
		for t := range x {
			h := r.norm(x[t], w("input_layernorm"))
			q = append(q, refLinear(w("self_attn.q_proj"), h, c.Dim))
			k = append(k, refLinear(w("self_attn.k_proj"), h, kv))
			v = append(v, refLinear(w("self_attn.v_proj"), h, kv))
			for i := range c.Heads {
				r.rope(q[t][i*hd:][:hd], t)
			}
			for i := range c.KVHeads {
				r.rope(k[t][i*hd:][:hd], t)
			}
		}
		for t := range x {
			att := make([]float64, c.Dim)
			for h := range c.Heads {
				g := h / (c.Heads / c.KVHeads)
				e, sum := make([]float64, t+1), 0.0
				for s := range e {
					for i := range hd {
						e[s] += q[t][h*hd+i] * k[s][g*hd+i]
					}
					e[s] = math.Exp(e[s] / math.Sqrt(float64(hd)))
					sum += e[s]
				}
				for s := range e {
					for i := range hd {
						att[h*hd+i] += e[s] / sum * v[s][g*hd+i]
					}
				}
			}
			for i, y := range refLinear(w("self_attn.o_proj"), att, c.Dim) {
				x[t][i] += y
			}
			h := r.norm(x[t], w("post_attention_layernorm"))
			ga, up := refLinear(w("mlp.gate_proj"), h, c.FFN), refLinear(w("mlp.up_proj"), h, c.FFN)
			for i := range ga {
				ga[i] = ga[i] / (1 + math.Exp(-ga[i])) * up[i]
			}
			for i, y := range refLinear(w("mlp.down_proj"), ga, c.Dim) {
				x[t][i] += y
			}
		}
	}
	out := make([][]float64, len(x))
	for t := range x {
		out[t] = refLinear(r.p["model.embed_tokens.weight"], r.norm(x[t], r.p["model.norm.weight"]), c.Vocab)
	}
	return out
}

// loss is the loss of a whole batch.
func (r *refModel) loss(batch []Datum, l Loss) float64 {
	temp := l.Temperature
	if temp == 0 {
		temp = 1
	}
	var sumW, seqs, total float64
	for _, d := range batch {
		s := 0.0
		for _, w := range d.Weights {
			s += float64(w)
		}
		sumW += s
		if s != 0 {
			seqs++
		}
	}
	for _, d := range batch {
		z := r.logits(d.Tokens)
		seq, w := 0.0, 0.0
		for i := 1; i < len(d.Tokens); i++ {
			if d.Weights[i] == 0 {
				continue
			}
			row, lse, ent := z[i-1], 0.0, 0.0
			for _, v := range row {
				lse += math.Exp(v / temp)
			}
			lse = math.Log(lse)
			for _, v := range row {
				ent -= math.Exp(v/temp-lse) * (v/temp - lse)
			}
			lp := row[d.Tokens[i]]/temp - lse
			term := -lp
			if l.Kind == PPO {
				a, ratio := float64(d.Advantages[i]), math.Exp(lp-float64(d.OldLogprobs[i]))
				term = math.Max(-a*ratio, -a*math.Min(math.Max(ratio, 1-l.ClipLow), 1+l.ClipHigh))
				if a < 0 && l.ClipDual > 0 {
					term = math.Min(term, -a*l.ClipDual)
				}
			}
			if l.KLCoef != 0 {
				x := float64(d.RefLogprobs[i]) - lp
				term += l.KLCoef * math.Min(math.Exp(x)-x-1, 10)
			}
			term -= l.EntropyCoef * ent
			seq += float64(d.Weights[i]) * term
			w += float64(d.Weights[i])
		}
		if l.Reduction == SeqMean {
			if w != 0 {
				total += seq / w / seqs
			}
		} else {
			total += seq / sumW
		}
	}
	return total
}
