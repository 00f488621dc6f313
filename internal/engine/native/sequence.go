package native

import (
	"sync/atomic"
	"time"

	"agentrl/internal/nn"
	"agentrl/internal/policy"
	"agentrl/internal/trajectory"
)

// sequence is one generation on its way through a shard. The shard alone touches it until result is delivered; only
// cancelled is shared.
type sequence struct {
	version   *version
	key       string
	tokens    []int32 // prompt and what was sampled; tokens[:fed] are in the cache
	prompt    int     // length of the prompt
	fed       int
	limit     int // tokens may not grow beyond this length
	sampling  policy.Sampling
	stops     []int32
	state     policy.ConstraintState
	cache     *nn.Cache
	head      headKey
	fresh     bool // nothing was cached, so the prompt may be shared as an opening
	cached    int
	first     time.Time
	logprobs  []float32
	kept      []float32
	cancelled atomic.Bool
	done      chan outcome // buffered, receives once
}

type outcome struct {
	completion policy.Completion
	err        error
}

func (q *sequence) stop(id int32) bool {
	for _, s := range q.stops {
		if s == id {
			return true
		}
	}
	return false
}

// accept appends a drawn token and says why the generation ends, or nothing.
func (q *sequence) accept(d drawn, truncated bool) trajectory.Finish {
	q.tokens = append(q.tokens, d.id)
	q.logprobs = append(q.logprobs, d.logprob)
	if truncated {
		q.kept = append(q.kept, d.kept)
	}
	if q.state != nil {
		q.state.Accept(d.id)
	}
	switch {
	case q.stop(d.id):
		return trajectory.FinishStop
	case len(q.tokens) >= q.limit:
		return trajectory.FinishLength
	}
	return ""
}

func (q *sequence) completion(finish trajectory.Finish, engineID string) policy.Completion {
	return policy.Completion{
		IDs:          q.tokens[q.prompt:len(q.tokens):len(q.tokens)],
		Logprobs:     q.logprobs,
		KeptMass:     q.kept,
		Finish:       finish,
		Version:      int64(q.version.number),
		Digest:       q.version.digest,
		EngineID:     engineID,
		CachedTokens: q.cached,
		FirstTokenAt: q.first,
	}
}
