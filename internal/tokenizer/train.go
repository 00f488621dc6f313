package tokenizer

import (
	"container/heap"
	"iter"
	"slices"
	"strings"

	"agentrl/internal/errs"
)

// TrainOptions says how a tokenizer is trained.
type TrainOptions struct {
	VocabSize    int      // upper bound of the number of ids, special tokens and the 256 bytes included
	Special      []string // special tokens in the order of their ids, which follow the byte and merge ids
	MinFrequency int      // a pair seen less often is not merged; 0 means 2
}

// Train learns merges from texts. Equal texts give equal tokenizers: ties are broken by the ids of the pair. The
// result may have fewer ids than asked for when nothing is left to merge.
func Train(texts iter.Seq[string], opt TrainOptions) (*Tokenizer, error) {
	if need := 256 + len(opt.Special); opt.VocabSize < need {
		return nil, errs.Field("vocab_size", "%d is too small; 256 bytes and %d special tokens need at least %d", opt.VocabSize, len(opt.Special), need)
	}
	if opt.VocabSize > maxVocab {
		return nil, errs.Field("vocab_size", "%d is too large; at most %d is allowed", opt.VocabSize, maxVocab)
	}
	if opt.MinFrequency <= 0 {
		opt.MinFrequency = 2
	}
	counts := map[string]int{}
	for text := range texts {
		for len(text) > 0 {
			n := splitWords(text)
			if n > 1 && n <= maxCachedWord {
				if _, ok := counts[text[:n]]; ok {
					counts[text[:n]]++
				} else {
					counts[strings.Clone(text[:n])] = 1
				}
			}
			text = text[n:]
		}
	}
	tr := newTrainer(counts)
	for len(tr.tokens) < opt.VocabSize-len(opt.Special) && tr.step(opt.MinFrequency) {
	}
	return build(tr.merges, opt.Special, splitWords, preWords())
}

// trainer keeps the words as id sequences and an index from pairs to the words that hold them.
type trainer struct {
	words  [][]int32
	counts []int
	freq   map[pair]int
	where  map[pair]map[int32]struct{}
	queue  pairQueue
	merges []pair
	tokens []string
	byText map[string]int32
}

func newTrainer(counts map[string]int) *trainer {
	words := make([]string, 0, len(counts))
	for w := range counts {
		words = append(words, w)
	}
	slices.Sort(words)
	tr := &trainer{freq: map[pair]int{}, where: map[pair]map[int32]struct{}{}, byText: map[string]int32{}}
	for i := range 256 {
		tr.tokens = append(tr.tokens, string([]byte{byte(i)}))
	}
	for _, w := range words {
		ids := make([]int32, len(w))
		for i := range len(w) {
			ids[i] = int32(w[i])
		}
		tr.words = append(tr.words, ids)
		tr.counts = append(tr.counts, counts[w])
	}
	for i := range tr.words {
		tr.count(int32(i), 1, nil)
	}
	for p, f := range tr.freq {
		tr.queue = append(tr.queue, pairCount{p, f})
	}
	heap.Init(&tr.queue)
	return tr
}

// count adds sign times the pairs of word w; touched collects them.
func (tr *trainer) count(w int32, sign int, touched map[pair]struct{}) {
	ids := tr.words[w]
	for i := 0; i+1 < len(ids); i++ {
		p := pair{ids[i], ids[i+1]}
		tr.freq[p] += sign * tr.counts[w]
		if touched != nil {
			touched[p] = struct{}{}
		}
		if sign > 0 {
			if tr.where[p] == nil {
				tr.where[p] = map[int32]struct{}{}
			}
			tr.where[p][w] = struct{}{}
		}
	}
}

// step makes the most frequent pair a token; false means that no pair is frequent enough.
func (tr *trainer) step(least int) bool {
	var best pairCount
	for {
		if tr.queue.Len() == 0 {
			return false
		}
		best = heap.Pop(&tr.queue).(pairCount)
		if now := tr.freq[best.p]; now != best.n {
			continue // an older count; the present one was pushed when it changed
		}
		break
	}
	if best.n < least {
		return false
	}
	// Two pairs may spell the same text; they share one id.
	text := tr.tokens[best.p.a] + tr.tokens[best.p.b]
	id, ok := tr.byText[text]
	if !ok {
		id = int32(len(tr.tokens))
		tr.byText[text] = id
		tr.tokens = append(tr.tokens, text)
	}
	tr.merges = append(tr.merges, best.p)
	touched := map[pair]struct{}{}
	for w := range tr.where[best.p] {
		tr.count(w, -1, touched)
		ids := tr.words[w]
		out := ids[:0]
		for i := 0; i < len(ids); i++ {
			if i+1 < len(ids) && ids[i] == best.p.a && ids[i+1] == best.p.b {
				out = append(out, id)
				i++
				continue
			}
			out = append(out, ids[i])
		}
		tr.words[w] = out
		tr.count(w, 1, touched)
	}
	delete(tr.where, best.p)
	delete(tr.freq, best.p)
	delete(touched, best.p)
	for p := range touched {
		if n := tr.freq[p]; n > 0 {
			heap.Push(&tr.queue, pairCount{p, n})
		} else {
			delete(tr.freq, p)
			delete(tr.where, p)
		}
	}
	return true
}

type pairCount struct {
	p pair
	n int
}

// pairQueue orders by frequency, then by the ids of the pair, so that the order of pushes does not matter.
type pairQueue []pairCount

func (q pairQueue) Len() int { return len(q) }
func (q pairQueue) Less(i, j int) bool {
	a, b := q[i], q[j]
	switch {
	case a.n != b.n:
		return a.n > b.n
	case a.p.a != b.p.a:
		return a.p.a < b.p.a
	}
	return a.p.b < b.p.b
}
func (q pairQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *pairQueue) Push(x any)   { *q = append(*q, x.(pairCount)) }
func (q *pairQueue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}
