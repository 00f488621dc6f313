package alfworld

import (
	"slices"
	"testing"
	"time"
)

func TestStats(t *testing.T) {
	for level := range MaxLevel + 1 {
		gen, err := NewGenerator(NewLibrary(), level, Current)
		if err != nil {
			t.Fatal(err)
		}
		var recs, objs, locs, adm []int
		lens := map[string][]int{}
		var el time.Duration
		for i := range int64(600) {
			kinds := gen.Kinds()
			kind := kinds[int(i)%len(kinds)]
			seed := i
			if i%5 == 0 {
				seed = unseenStart + i
			}
			t0 := time.Now()
			g, err := gen.Game(kind, seed)
			if err != nil {
				t.Fatal(err)
			}
			el += time.Since(t0)
			if g.Kind() != kind {
				t.Fatal(g.Kind(), kind)
			}
			p, err := g.plan()
			if err != nil {
				t.Fatal(level, kind, seed, err, g.Intro())
			}
			lens[kind] = append(lens[kind], len(p))
			v := g.Reset().view()
			recs = append(recs, len(v.list("receptacleatlocation")))
			objs = append(objs, len(v.list("objecttype")))
			locs = append(locs, len(g.byType[g.rules.d.types["location"]]))
			s := g.Reset()
			for _, c := range p {
				s.Step(c)
				adm = append(adm, len(s.Commands()))
			}
		}
		q := func(x []int) []int {
			slices.Sort(x)
			return []int{x[0], x[len(x)/4], x[len(x)/2], x[len(x)*3/4], x[len(x)-1]}
		}
		t.Log(level, "recs", q(recs), "objs", q(objs), "locs", q(locs), "adm", q(adm), el/600)
		for k, x := range lens {
			t.Log("  ", k, q(x))
		}
	}
}
