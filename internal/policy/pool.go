package policy

import (
	"fmt"
	"math"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

// The modes of a pool (method.md 3).
const (
	ModeSingle = "single" // one policy for the whole run
	ModeMix    = "mix"    // drawn once per trajectory
	ModeCross  = "cross"  // drawn at every turn
)

// The policies that an engine offers under fixed names.
const (
	Current = "current"
	Stale   = "stale"
)

// PoolMember is one policy of a pool.
type PoolMember struct {
	Policy       string  // "current", "stale" or the name of an external model
	Letter       string  // C, S, then A, B, ... for external models
	Share        float64 // probability of being drawn, all shares sum to 1
	RefreshEvery int     // updates between two refreshes of the stale member; 0 for others
}

// Pool draws who writes a turn. It is immutable and safe for concurrent use.
type Pool struct {
	mode    string
	seed    uint64
	members []PoolMember
	cum     []float64 // running sum of shares; the last is 1
}

// DrawKey names one draw. The attempt of a run is deliberately no part of it: a resumed run draws as the first one.
type DrawKey struct {
	Group  int64
	Member int
	Retry  int
	Turn   int // ignored outside cross mode
}

// NewPool checks a configuration and builds its pool. Members of weight 0 are left out.
//
// It refuses what would silently switch cross sampling off: a mix or cross pool with fewer than two members of positive
// weight, and a single pool with more than one (method.md 3.1).
func NewPool(conf experiment.Pool, seed uint64) (*Pool, error) {
	switch conf.Mode {
	case ModeSingle, ModeMix, ModeCross:
	default:
		return nil, errs.Field("policy.pool.mode", "unknown mode %q; allowed are single, mix and cross", conf.Mode)
	}
	p := &Pool{mode: conf.Mode, seed: seed}
	seen := map[string]bool{}
	var sum float64
	for i, m := range conf.Members {
		field := func(name string) string { return fmt.Sprintf("policy.pool.members[%d].%s", i, name) }
		if m.Policy == "" {
			return nil, errs.Field(field("policy"), "a member needs a policy name, such as current or stale")
		}
		if seen[m.Policy] {
			return nil, errs.Field(field("policy"), "%q is listed twice; each policy may appear once", m.Policy)
		}
		seen[m.Policy] = true
		if math.IsNaN(m.Weight) || math.IsInf(m.Weight, 0) || m.Weight < 0 {
			return nil, errs.Field(field("weight"), "weight %v is not allowed; it must be a finite number of at least 0", m.Weight)
		}
		if m.Policy == Stale && m.RefreshEvery < 1 {
			return nil, errs.Field(field("refresh_every"), "the stale member needs refresh_every of at least 1 update, got %d", m.RefreshEvery)
		}
		if m.Policy != Stale && m.RefreshEvery != 0 {
			return nil, errs.Field(field("refresh_every"), "refresh_every is for the stale member only")
		}
		if m.Weight == 0 {
			continue
		}
		p.members = append(p.members, PoolMember{Policy: m.Policy, Share: m.Weight, RefreshEvery: m.RefreshEvery})
		sum += m.Weight
	}
	switch {
	case len(p.members) == 0:
		return nil, errs.Field("policy.pool.members", "no member has a positive weight; at least one is needed")
	case conf.Mode == ModeSingle && len(p.members) > 1:
		return nil, errs.Field("policy.pool.members", "mode single takes one member of positive weight, got %d; use mix or cross for several", len(p.members))
	case conf.Mode != ModeSingle && len(p.members) < 2:
		return nil, errs.Field("policy.pool.members", "mode %s needs at least two members of positive weight, got %d; use single for one", conf.Mode, len(p.members))
	case math.IsInf(sum, 0):
		return nil, errs.Field("policy.pool.members", "the weights are too large to be summed")
	}
	next, acc := byte('A'), 0.0
	for i := range p.members {
		m := &p.members[i]
		switch m.Policy {
		case Current:
			m.Letter = "C"
		case Stale:
			m.Letter = "S"
		default:
			for next == 'C' || next == 'S' {
				next++
			}
			if next > 'Z' {
				return nil, errs.Field("policy.pool.members", "at most 24 external policies fit into one pool")
			}
			m.Letter = string(next)
			next++
		}
		m.Share /= sum
		acc += m.Share
		p.cum = append(p.cum, acc)
	}
	p.cum[len(p.cum)-1] = 1
	return p, nil
}

// Mode returns single, mix or cross.
func (p *Pool) Mode() string { return p.mode }

// Members returns the members in the order of the configuration; Draw returns indices into it.
func (p *Pool) Members() []PoolMember { return append([]PoolMember(nil), p.members...) }

// Index returns the position of a policy among the members, or -1.
func (p *Pool) Index(name string) int {
	for i := range p.members {
		if p.members[i].Policy == name {
			return i
		}
	}
	return -1
}

// RefreshEvery returns after how many updates the stale member takes new weights, or 0 without one.
func (p *Pool) RefreshEvery() int {
	if i := p.Index(Stale); i >= 0 {
		return p.members[i].RefreshEvery
	}
	return 0
}

// Draw returns the index of the member that writes the turn named by k. The same seed and key always give the same
// member, in any order of calls.
func (p *Pool) Draw(k DrawKey) int {
	if len(p.members) == 1 {
		return 0
	}
	parts := []uint64{uint64(k.Group), uint64(k.Member), uint64(k.Retry)}
	if p.mode == ModeCross {
		parts = append(parts, uint64(k.Turn))
	}
	u := Uniform(Hash(p.seed, parts...))
	for i, c := range p.cum {
		if u < c {
			return i
		}
	}
	return len(p.cum) - 1
}
