package policy

import (
	"math"
	"strings"
	"testing"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

func conf(mode string, ms ...experiment.Member) experiment.Pool {
	return experiment.Pool{Mode: mode, Members: ms}
}

func member(name string, weight float64, every int) experiment.Member {
	return experiment.Member{Policy: name, Weight: weight, RefreshEvery: every}
}

func TestNewPoolRefuses(t *testing.T) {
	t.Parallel()
	cur, stale := member(Current, 3, 0), member(Stale, 1, 25)
	tests := []struct {
		name, field string
		conf        experiment.Pool
	}{
		{"mode", "mode", conf("both", cur)},
		{"empty", "members", conf(ModeSingle)},
		{"all zero", "members", conf(ModeSingle, member(Current, 0, 0))},
		{"single with two", "members", conf(ModeSingle, cur, stale)},
		{"cross with one", "members", conf(ModeCross, cur)},
		{"cross with zero weight", "members", conf(ModeCross, cur, member(Stale, 0, 25))},
		{"mix with one", "members", conf(ModeMix, cur)},
		{"negative", "members[1].weight", conf(ModeCross, cur, member(Stale, -1, 25))},
		{"not a number", "members[0].weight", conf(ModeCross, member(Current, math.NaN(), 0), stale)},
		{"infinite", "members[0].weight", conf(ModeCross, member(Current, math.Inf(1), 0), stale)},
		{"too large", "members", conf(ModeCross, member(Current, math.MaxFloat64, 0), member(Stale, math.MaxFloat64, 1))},
		{"stale without interval", "members[1].refresh_every", conf(ModeCross, cur, member(Stale, 1, 0))},
		{"current with interval", "members[0].refresh_every", conf(ModeCross, member(Current, 1, 5), stale)},
		{"twice", "members[1].policy", conf(ModeCross, cur, cur)},
		{"nameless", "members[0].policy", conf(ModeSingle, member("", 1, 0))},
	}
	for _, tt := range tests {
		_, err := NewPool(tt.conf, 1)
		if errs.CodeOf(err) != errs.Invalid || err == nil || !strings.Contains(err.Error(), tt.field) {
			t.Errorf("%s: got %v, want a refusal that names %s", tt.name, err, tt.field)
		}
	}
}

func TestPoolMembers(t *testing.T) {
	t.Parallel()
	p, err := NewPool(conf(ModeCross, member("gpt", 1, 0), member(Stale, 1, 25), member(Current, 2, 0), member("none", 0, 0), member("b", 0, 0), member("y", 1, 0), member("z", 1, 0)), 1)
	if err != nil {
		t.Fatal(err)
	}
	var letters string
	for _, m := range p.Members() {
		letters += m.Letter
	}
	if letters != "ASCBD" {
		t.Errorf("letters %s, want ASCBD: external names never take C or S", letters)
	}
	if p.RefreshEvery() != 25 || p.Index(Current) != 2 || p.Index("none") != -1 || p.Mode() != ModeCross {
		t.Errorf("refresh %d, current at %d, none at %d", p.RefreshEvery(), p.Index(Current), p.Index("none"))
	}
	if s := p.Members()[2].Share; math.Abs(s-1.0/3) > 1e-12 {
		t.Errorf("share %v, want 1/3", s)
	}
}

func TestDrawGolden(t *testing.T) {
	t.Parallel()
	p, err := NewPool(conf(ModeCross, member(Current, 3, 0), member(Stale, 1, 25)), 7)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for turn := range 40 {
		got.WriteString(p.Members()[p.Draw(DrawKey{Group: 5, Member: 2, Turn: turn})].Letter)
	}
	// Stored runs are replayed by these draws, so the generator may never change.
	if want := "CCCCCCCCCCCCSCSCCSCSSCCSCCCCCCCSSCCSCCCC"; got.String() != want {
		t.Errorf("draws\n%s, want\n%s", got.String(), want)
	}
}

func TestDrawShares(t *testing.T) {
	t.Parallel()
	share := func(p *Pool, vary func(i int) DrawKey) float64 {
		n := 0
		for i := range 20000 {
			n += p.Draw(vary(i))
		}
		return float64(n) / 20000
	}
	p, err := NewPool(conf(ModeCross, member(Current, 0.75, 0), member(Stale, 0.25, 25)), 3)
	if err != nil {
		t.Fatal(err)
	}
	for name, vary := range map[string]func(i int) DrawKey{
		"turn":   func(i int) DrawKey { return DrawKey{Turn: i} },
		"group":  func(i int) DrawKey { return DrawKey{Group: int64(i)} },
		"member": func(i int) DrawKey { return DrawKey{Member: i} },
		"retry":  func(i int) DrawKey { return DrawKey{Retry: i} },
	} {
		// Five standard deviations of a binomial share.
		if s := share(p, vary); math.Abs(s-0.25) > 5*math.Sqrt(0.25*0.75/20000) {
			t.Errorf("varying %s: share of stale %v, want 0.25", name, s)
		}
	}
}

func TestDrawModes(t *testing.T) {
	t.Parallel()
	mix, err := NewPool(conf(ModeMix, member(Current, 1, 0), member(Stale, 1, 25)), 3)
	if err != nil {
		t.Fatal(err)
	}
	single, err := NewPool(conf(ModeSingle, member(Current, 1, 0), member(Stale, 0, 25)), 3)
	if err != nil {
		t.Fatal(err)
	}
	both := map[int]bool{}
	for g := range int64(50) {
		first := mix.Draw(DrawKey{Group: g})
		both[first] = true
		for turn := range 10 {
			if mix.Draw(DrawKey{Group: g, Turn: turn}) != first {
				t.Fatal("mix changed the policy within a trajectory")
			}
			if single.Draw(DrawKey{Group: g, Turn: turn}) != 0 {
				t.Fatal("single drew another member")
			}
		}
	}
	if len(both) != 2 {
		t.Error("mix never drew one of the members")
	}
}

func TestUniform(t *testing.T) {
	t.Parallel()
	if Uniform(0) != 0 || Uniform(math.MaxUint64) >= 1 {
		t.Error("outside [0, 1)")
	}
	if Hash(1, 2, 3) == Hash(1, 3, 2) || Hash(1) == Hash(2) || Hash(1, 0) == Hash(1) || Hash(0, 1) == Hash(1, 0) {
		t.Error("different keys collide")
	}
}
