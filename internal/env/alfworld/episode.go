package alfworld

import (
	"context"
	"strconv"
	"strings"
	"sync"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/trajectory"

	"agentrl/internal/env"
)

// The texts that answer unusable messages (env-alfworld.md 6).
const (
	noCall   = "No executable tool calls found. Please call a tool instead"
	badCall  = "No valid tool calls found. Please call a tool instead."
	oneCall  = "Only one action per turn is executed."
	sameMax  = 3 // equal submissions in a row that end an episode ...
	sameFrom = 4 // ... from this many executed rounds on
)

// exchange is one executed command and its answer.
type exchange struct{ command, text string }

// episode plays one game by tool calls.
type episode struct {
	conf  experiment.ALFWorld
	limit int
	lock  *sync.Mutex // held while a step runs where the upstream lock is reproduced; else nil
	p     *Session

	rounds    int
	submitted []string // raw submissions of executed rounds
	sticky    trajectory.Status
	warnings  int
	over      bool
	closed    bool

	history []exchange
	known   *knowledge
	learned int // exchanges that known has seen
}

var (
	_ env.Episode      = (*episode)(nil)
	_ env.Admissible   = (*episode)(nil)
	_ env.Demonstrator = (*episode)(nil)
)

// Open returns the first messages. The native profile sends one short user message.
func (e *episode) Open() []trajectory.Message {
	parts := strings.Split(e.p.g.intro, "\n\n")
	obs := strings.Join(parts[min(1, len(parts)-1):], "\n")
	if e.conf.Profile == Native {
		return []trajectory.Message{{Role: trajectory.User, Content: obs + e.listing()}}
	}
	return []trajectory.Message{
		{Role: trajectory.System, Content: systemText},
		{Role: trajectory.User, Content: "Here is your task. " + obs + e.listing()},
	}
}

const systemText = "You are a helper in a household. First you are told what is around you and what to achieve. " +
	"In every turn you get the list of actions that are possible at that moment: choose exactly one of them and submit it, " +
	"worded as in the list, with the tool " + toolName + ". Always call the tool; a reply without a call does nothing. " +
	"If you read \"" + nothing + "\", the action was not valid then. You may think before you act if that helps."

// listing is the list of possible actions where it is printed.
func (e *episode) listing() string {
	if !e.conf.ListActions {
		return ""
	}
	return " AVAILABLE ACTIONS: " + strings.Join(e.p.Commands(), "\n") + "\n"
}

// Step plays one round.
func (e *episode) Step(ctx context.Context, m trajectory.Message) (env.Step, error) {
	if err := ctx.Err(); err != nil {
		return env.Step{}, err
	}
	if e.closed || e.over {
		return env.Step{}, errs.New(errs.Conflict, "the episode is over")
	}
	if e.lock != nil {
		e.lock.Lock()
		defer e.lock.Unlock()
	}
	e.rounds++
	if len(m.ToolCalls) == 0 {
		e.stick(trajectory.AgentValidationFailed)
		return e.end([]trajectory.Message{{Role: trajectory.User, Content: noCall}}, ""), nil
	}
	call := m.ToolCalls[0]
	action, warn, ok := submission(call, e.conf.Compat)
	if !ok {
		e.stick(trajectory.AgentInvalidAction)
		if e.conf.Compat {
			return e.end([]trajectory.Message{{Role: trajectory.User, Content: badCall}}, ""), nil
		}
		return e.end(e.answer(m.ToolCalls, badCall), ""), nil
	}
	if warn {
		e.warnings++
	}
	command := normal(action)
	if e.conf.Match == BLEU {
		command = matchBLEU(action, e.p.Commands())
	}
	text, err := e.p.Step(command)
	if err != nil {
		return env.Step{}, err
	}
	e.history = append(e.history, exchange{strings.TrimSpace(command), text})
	e.submitted = append(e.submitted, action)
	shown := text
	if e.conf.Profile == Benchmark && strings.HasPrefix(shown, "You arrive at loc ") {
		if _, rest, ok := strings.Cut(shown, ". "); ok {
			shown = rest
		}
	}
	return e.end(e.answer(m.ToolCalls, shown+e.listing()), text), nil
}

// answer replies to the first call and, unless upstream is reproduced, to all others, so that no call stays open.
func (e *episode) answer(calls []trajectory.ToolCall, text string) []trajectory.Message {
	out := []trajectory.Message{{Role: trajectory.ToolRole, Content: text, ToolCallID: calls[0].ID}}
	if !e.conf.Compat {
		for _, c := range calls[1:] {
			out = append(out, trajectory.Message{Role: trajectory.ToolRole, Content: oneCall, ToolCallID: c.ID})
		}
	}
	return out
}

// stick remembers what upstream keeps as the final status after an unusable message.
func (e *episode) stick(s trajectory.Status) {
	if e.sticky == "" {
		e.sticky = s
	}
}

// end closes the round. text is the answer of the game, empty if no action was executed.
func (e *episode) end(replies []trajectory.Message, text string) env.Step {
	won := text != "" && e.p.Won()
	reward := 0.0
	if won && !strings.Contains(text, nothing) {
		reward = 1
	}
	repeated := text != "" && e.repeats()
	ours, upstream := e.verdict(won, repeated, false), e.verdict(won, repeated, true)
	s := env.Step{Messages: replies, Status: ours.status, Reward: reward}
	if e.conf.Compat {
		s.Status = upstream.status
	}
	active := ours
	if e.conf.Compat {
		active = upstream
	}
	if s.Status == trajectory.Running {
		return s
	}
	e.over = true
	s.Reward = active.score
	s.Metrics = map[string]float64{"score": active.score, "score_upstream": upstream.score, "rounds": float64(e.rounds)}
	if e.warnings > 0 {
		s.Metrics["argument_warnings"] = float64(e.warnings)
	}
	if e.conf.Wording == Legacy {
		s.Metrics["wording_legacy"] = 1
	} else {
		s.Metrics["wording_legacy"] = 0
	}
	return s
}

type verdict struct {
	status trajectory.Status
	score  float64
}

// verdict says how the round ends under our rules or under the upstream ones (env-alfworld.md 6, 7.2).
func (e *episode) verdict(won, repeated, upstream bool) verdict {
	switch {
	case upstream && repeated:
		return verdict{trajectory.AgentInvalidAction, 0}
	case won && upstream && e.sticky != "":
		return verdict{e.sticky, 1}
	case won:
		return verdict{trajectory.Completed, 1}
	case repeated:
		return verdict{trajectory.AgentInvalidAction, 0}
	case e.rounds >= e.limit:
		return verdict{trajectory.TaskLimitReached, 0}
	}
	return verdict{trajectory.Running, 0}
}

// repeats reports whether the last submissions are all equal.
func (e *episode) repeats() bool {
	n := len(e.submitted)
	if n < sameFrom {
		return false
	}
	for _, s := range e.submitted[n-sameMax:] {
		if s != e.submitted[n-1] {
			return false
		}
	}
	return true
}

// Admissible returns the commands that are possible now.
func (e *episode) Admissible() (tool string, arguments []string) {
	if e.over || e.closed {
		return toolName, nil
	}
	return toolName, e.p.Commands()
}

// Close ends the episode.
func (e *episode) Close() error {
	e.closed = true
	e.history, e.known = nil, nil
	return nil
}

// The experts.
const (
	Searching  = "searching"
	Privileged = "privileged"
)

// Expert returns what the named expert would do now. Searching decides from the texts of this episode, whoever chose
// the commands; its order of search depends on the seed. Privileged knows everything.
func (e *episode) Expert(name string, seed uint64) (trajectory.Message, error) {
	if e.over || e.closed {
		return trajectory.Message{}, errs.New(errs.Conflict, "the episode is over")
	}
	var command string
	var err error
	switch name {
	case Searching:
		command, err = e.search(seed)
	case Privileged:
		command, err = e.p.privileged()
	default:
		err = errs.Field("expert", "there is no expert %q; allowed are %s and %s", name, Searching, Privileged)
	}
	if err != nil {
		return trajectory.Message{}, err
	}
	return callFor("call_"+strconv.Itoa(e.rounds+1), command), nil
}

func (e *episode) search(seed uint64) (string, error) {
	if e.known == nil {
		e.known, e.learned = newKnowledge(e.p.g.intro), 0
	}
	for ; e.learned < len(e.history); e.learned++ {
		e.known.observe(e.history[e.learned].command, e.history[e.learned].text)
	}
	possible := make(map[string]bool, 64)
	for _, c := range e.p.Commands() {
		possible[c] = true
	}
	s := &searcher{k: e.known, t: e.p.g.wanted(), wording: e.conf.Wording, seed: seed, possible: possible,
		uniform: e.conf.Data == "" && e.conf.Level == 0}
	return s.next()
}
