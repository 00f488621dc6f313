package tokenizer

import "container/heap"

// mergeLong does what merge does in O(n log n) with a doubly linked list and a heap of candidate merges.
func (t *Tokenizer) mergeLong(ids []int32) []int32 {
	n := len(ids)
	next, prev := make([]int32, n), make([]int32, n)
	for i := range n {
		next[i], prev[i] = int32(i+1), int32(i-1)
	}
	h := &candidates{}
	push := func(i int32) {
		if i < 0 || next[i] >= int32(n) {
			return
		}
		p := pair{ids[i], ids[next[i]]}
		if m, ok := t.rank[p]; ok {
			heap.Push(h, candidate{m.rank, i, p, m.id})
		}
	}
	for i := range n - 1 {
		push(int32(i))
	}
	for h.Len() > 0 {
		c := heap.Pop(h).(candidate)
		j := next[c.at]
		// The pair may have been used up by an earlier merge: ids of dead places are -1.
		if j >= int32(n) || ids[c.at] != c.p.a || ids[j] != c.p.b {
			continue
		}
		ids[c.at], ids[j] = c.id, -1
		next[c.at] = next[j]
		if next[j] < int32(n) {
			prev[next[j]] = c.at
		}
		push(prev[c.at])
		push(c.at)
	}
	out := ids[:0]
	for _, id := range ids {
		if id >= 0 {
			out = append(out, id)
		}
	}
	return out
}

type candidate struct {
	rank, at int32
	p        pair
	id       int32
}

type candidates []candidate

func (c candidates) Len() int { return len(c) }
func (c candidates) Less(i, j int) bool {
	return c[i].rank < c[j].rank || c[i].rank == c[j].rank && c[i].at < c[j].at
}
func (c candidates) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c *candidates) Push(x any)   { *c = append(*c, x.(candidate)) }
func (c *candidates) Pop() any {
	old := *c
	x := old[len(old)-1]
	*c = old[:len(old)-1]
	return x
}
