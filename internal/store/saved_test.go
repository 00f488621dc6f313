package store_test

import (
	"slices"
	"sync"
	"testing"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

func savedTests() []conformance {
	return []conformance{{"saved objects", testSaved}, {"saves at once", testSavedRace}}
}

func testSaved(t *testing.T, f fixture) {
	ctx := t.Context()
	a := got(f.SaveObject(ctx, experiment.Saved{Kind: "mix", Name: " five ", Body: "one"}))(t)
	b := got(f.SaveObject(ctx, experiment.Saved{Kind: "mix", Name: "five", Body: "two", Note: "n"}))(t)
	c := got(f.SaveObject(ctx, experiment.Saved{Kind: "pool", Name: "five", Body: "p"}))(t)
	if a.Version != 1 || b.Version != 2 || c.Version != 1 || a.Name != "five" || !a.CreatedAt.Equal(start) {
		t.Fatalf("%+v %+v %+v", a, b, c)
	}
	if l := got(f.Objects(ctx, "mix"))(t); len(l) != 1 || l[0] != b {
		t.Fatalf("%+v", l)
	}
	if l := got(f.ObjectVersions(ctx, "mix", "five"))(t); !slices.Equal(l, []experiment.Saved{b, a}) {
		t.Fatalf("%+v", l)
	}
	if o := got(f.Object(ctx, a.ID))(t); o != a {
		t.Fatalf("%+v", o)
	}
	_, err := f.SaveObject(ctx, experiment.Saved{Kind: "recipe", Name: "x"})
	wantCode(t, err, errs.Invalid)
	_, err = f.SaveObject(ctx, experiment.Saved{Kind: "mix", Name: " "})
	wantCode(t, err, errs.Invalid)
	_, err = f.ObjectVersions(ctx, "mix", "nope")
	wantCode(t, err, errs.NotFound)
	_, err = f.Object(ctx, 99)
	wantCode(t, err, errs.NotFound)
}

func testSavedRace(t *testing.T, f fixture) {
	const n = 12
	versions := make([]int, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			o, err := f.SaveObject(t.Context(), experiment.Saved{Kind: "pool", Name: "p", Body: "b"})
			if err != nil {
				t.Error(err)
			}
			versions[i] = o.Version
		})
	}
	wg.Wait()
	slices.Sort(versions)
	for i, v := range versions {
		if v != i+1 {
			t.Fatalf("versions %v", versions)
		}
	}
}
