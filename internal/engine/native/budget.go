package native

import (
	"fmt"
	"strings"

	"agentrl/internal/errs"
	"agentrl/internal/nn"
)

// Budget is what the engine may use of memory (compute.md 9).
type Budget struct {
	Parts []BudgetPart
	Limit int64 // bytes
}

// BudgetPart is one line of the budget.
type BudgetPart struct {
	Name  string
	Bytes int64
}

// newBudget computes the parts and fills in the default of opt.CacheBytes.
func newBudget(c nn.Config, opt *Options) Budget {
	n := int64(c.NumParams())
	tokens := int64(max(opt.MicroBatchTokens, c.Context)) // a sequence longer than the micro-batch goes alone
	sequence := 8 * int64(c.Layers) * int64(c.KVDim()) * int64(c.Context)
	versions := int64(opt.Versions)
	b := Budget{
		Limit: opt.MemoryLimit,
		Parts: []BudgetPart{
			{"trainer (weights, gradients, two moments)", 16 * n},
			{"weights laid out for training", 8 * n},
			{"reference for the KL term, twice", 8 * n},
			{fmt.Sprintf("%d published versions", versions), 4 * n * versions},
			{"their copies laid out for decoding", 4 * n * versions},
			{fmt.Sprintf("activations of %d tokens", tokens), tokens * activation(c)},
			{"logits and scratch memory", 16 << 20},
			{fmt.Sprintf("KV cache of %d live sequences of %d tokens", opt.MaxBatch, c.Context), int64(opt.MaxBatch) * sequence},
		},
	}
	if opt.CacheBytes <= 0 {
		// Keeping less costs time, never correctness, so the default takes what is left, up to two full batches.
		opt.CacheBytes = max(sequence, min(2*int64(opt.MaxBatch)*sequence, b.Limit-b.Total()))
	}
	b.Parts = append(b.Parts, BudgetPart{"KV cache kept between turns", opt.CacheBytes})
	return b
}

// activation is the memory of one token in training: per layer both residual streams, queries, keys and values,
// attention output, gate and up projection and the statistics of norms and softmax; and once the gradients of the same.
// Attention weights are recomputed. The logits of a few rows at a time come on top of it, counted apart.
func activation(c nn.Config) int64 {
	d, w, f, h := int64(c.Dim), int64(c.QKVDim()), int64(c.FFN), int64(c.Heads)
	return 4 * (int64(c.Layers)*(3*d+w+2*f+2*h+2) + 8*d + w + 3*f)
}

// Total is the sum of all parts in bytes.
func (b Budget) Total() (sum int64) {
	for _, p := range b.Parts {
		sum += p.Bytes
	}
	return sum
}

// String is the table as text.
func (b Budget) String() string {
	var s strings.Builder
	for _, p := range b.Parts {
		fmt.Fprintf(&s, "%10.1f MB  %s\n", float64(p.Bytes)/1e6, p.Name)
	}
	fmt.Fprintf(&s, "%10.1f MB  in all", float64(b.Total())/1e6)
	return s.String()
}

func (b Budget) check() error {
	if b.Total() <= b.Limit {
		return nil
	}
	return errs.Field("engine.memory_limit",
		"the engine needs %.1f MB, the limit is %.1f MB; raise the limit or choose a smaller model, context, micro-batch or cache:\n%s",
		float64(b.Total())/1e6, float64(b.Limit)/1e6, b)
}
