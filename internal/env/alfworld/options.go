package alfworld

import (
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

// The profiles: Native is for models trained here, Benchmark talks as the published benchmark does.
const (
	Native    = "native"
	Benchmark = "benchmark"
)

// The ways to map a submission to a command.
const (
	Exact = "exact"
	BLEU  = "bleu"
)

const (
	nativeTurns    = 50
	benchmarkTurns = 20
)

// complete fills in what the configuration leaves empty from its profile, and refuses unknown values.
func complete(c experiment.ALFWorld) (experiment.ALFWorld, error) {
	fill := func(v *string, standard string) {
		if *v == "" {
			*v = standard
		}
	}
	fill(&c.Profile, Native)
	if c.Profile == Benchmark {
		fill(&c.Wording, Legacy)
		fill(&c.Match, BLEU)
		c.ListActions = true // the protocol of the benchmark prints them
	}
	fill(&c.Wording, Current)
	fill(&c.Match, Exact)
	for _, o := range []struct{ field, value, a, b string }{
		{"env.alfworld.profile", c.Profile, Native, Benchmark},
		{"env.alfworld.wording", c.Wording, Current, Legacy},
		{"env.alfworld.match", c.Match, Exact, BLEU},
	} {
		if o.value != o.a && o.value != o.b {
			return c, errs.Field(o.field, "%q is unknown; allowed are %s and %s", o.value, o.a, o.b)
		}
	}
	if c.Level < 0 || c.Level > MaxLevel {
		return c, errs.Field("env.alfworld.level", "%d is not a level; allowed are 0 to %d", c.Level, MaxLevel)
	}
	return c, nil
}
