package alfworld

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"agentrl/internal/errs"
)

// generatorVersion is part of every seed: a change of what a seed generates must raise it.
const generatorVersion = 1

// MaxLevel is the highest level of generated games (env-alfworld.md 9).
const MaxLevel = 4

// Generator makes games as a pure function of its version, level, task type and seed. Safe for concurrent use.
type Generator struct {
	level   int
	rules   *rules
	grammar string
}

// NewGenerator returns the generator of one level, whose games are played in the given wording.
func NewGenerator(lib *Library, level int, wording string) (*Generator, error) {
	if level < 0 || level > MaxLevel {
		return nil, errs.Field("level", "%d is not a level; allowed are 0 to %d", level, MaxLevel)
	}
	g := &Generator{level: level, grammar: genGrammarText()}
	var err error
	g.rules, _, err = lib.load(genDomain, strings.Replace(g.grammar, genGoal, goalIntro+"x.", 1), wording)
	if err != nil {
		return nil, fmt.Errorf("rules of generated games: %w", err)
	}
	return g, nil
}

// Kinds lists the task types of the level.
func (g *Generator) Kinds() []string {
	if g.level == 0 {
		return []string{Place}
	}
	return Kinds()
}

// Game generates a game ready for play. It is the same game as loading what File returns, except that the walkthrough
// is not worked out.
func (g *Generator) Game(kind string, seed int64) (*Game, error) {
	h, err := g.build(kind, seed)
	if err != nil {
		return nil, err
	}
	return newGame(g.rules, &h.problem, h.sentence)
}

// File generates a game as the content of a game file.
func (g *Generator) File(kind string, seed int64) (*File, error) {
	h, err := g.build(kind, seed)
	if err != nil {
		return nil, err
	}
	game, err := newGame(g.rules, &h.problem, h.sentence)
	if err != nil {
		return nil, err
	}
	plan, err := game.plan()
	if err != nil {
		return nil, fmt.Errorf("level %d, %s, seed %d: %w", g.level, kind, seed, err)
	}
	for i, c := range plan {
		plan[i] = translateCommand(c, Current)
	}
	return &File{
		Domain:      genDomain,
		Grammar:     strings.Replace(g.grammar, genGoal, h.sentence, 1),
		Problem:     h.text(seed),
		Solvable:    true,
		Walkthrough: plan,
	}, nil
}

// seeded returns the stream of random numbers of one game.
func (g *Generator) seeded(kind string, seed int64) *rand.Rand {
	k := slices.Index(Kinds(), kind)
	return rand.New(rand.NewPCG(uint64(seed), uint64(generatorVersion)<<32|uint64(g.level)<<16|uint64(k)))
}

func (g *Generator) build(kind string, seed int64) (*house, error) {
	if !slices.Contains(g.Kinds(), kind) {
		return nil, errs.Field("kind", "level %d has no games of type %q; allowed are %s", g.level, kind, strings.Join(g.Kinds(), ", "))
	}
	h := newHouse(g.seeded(kind, seed))
	var err error
	if g.level == 0 {
		err = h.small(isUnseen(seed))
	} else {
		err = h.furnish(g.level, kind, isUnseen(seed))
	}
	if err != nil {
		return nil, fmt.Errorf("level %d, %s, seed %d: %w", g.level, kind, seed, err)
	}
	return h, nil
}

// The seed ranges of the splits. The second half of the test range has goals and rooms that no other seed has.
const (
	trainSamples = 1_000_000
	validStart   = 1_000_000
	validSamples = 10_000
	testStart    = 2_000_000
	testSamples  = 10_000
	unseenStart  = testStart + testSamples/2
)

func isUnseen(seed int64) bool { return seed >= unseenStart && seed < testStart+testSamples }

// reserved reports whether a goal pair is kept for the unseen tests: about one in six.
func reserved(object, place string) bool {
	h := uint32(2166136261)
	for _, c := range []byte(object + "/" + place) {
		h = (h ^ uint32(c)) * 16777619
	}
	return (h>>8)%6 == 0
}
