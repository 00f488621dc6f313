package train

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"agentrl/internal/experiment"
	"agentrl/internal/live"
	"agentrl/internal/trajectory"
)

// statusEvery is the shortest time between two status messages that nothing urgent asks for.
const statusEvery = 300 * time.Millisecond

// feed tells open pages what happens now. It implements rollout.Hooks; episodes call it from their goroutines.
type feed struct {
	l *loop

	mu   sync.Mutex
	last time.Time
}

func newFeed(l *loop) *feed { return &feed{l: l} }

// Started announces an episode with its opening messages.
func (f *feed) Started(t *trajectory.Trajectory) {
	open, err := json.Marshal(t.Open)
	if err != nil {
		return
	}
	ctx := context.Background()
	f.l.publish(ctx, live.RolloutsTopic(t.RunID), live.Delta, rolloutItem(t))
	f.l.publish(ctx, live.TrajectoryTopic(t.ID), live.Delta, live.TurnItem{ID: t.ID, Open: open, Status: string(t.Status)})
}

// Turn announces a finished turn.
func (f *feed) Turn(t *trajectory.Trajectory, turn *trajectory.Turn) {
	f.l.d.Hook("rollout-turn")
	data, err := json.Marshal(turn)
	if err != nil {
		return
	}
	ctx := context.Background()
	f.l.publish(ctx, live.RolloutsTopic(t.RunID), live.Delta, rolloutItem(t))
	f.l.publish(ctx, live.TrajectoryTopic(t.ID), live.Delta, live.TurnItem{ID: t.ID, Turn: data, Status: string(t.Status)})
}

// Ended announces the end of an episode.
func (f *feed) Ended(t *trajectory.Trajectory) {
	ctx := context.Background()
	item := rolloutItem(t)
	item.Reward = &t.Reward
	f.l.publish(ctx, live.RolloutsTopic(t.RunID), live.Delta, item)
	f.l.publish(ctx, live.TrajectoryTopic(t.ID), live.Delta, live.TurnItem{ID: t.ID, Status: string(t.Status)})
}

// maxLast is the length of the short text of an action, in bytes.
const maxLast = 80

func rolloutItem(t *trajectory.Trajectory) live.RolloutItem {
	item := live.RolloutItem{ID: t.ID, Group: t.Group, Member: t.Member, Phase: t.Phase, Task: t.Task, Sample: t.Sample,
		Letters: t.Letters(), Turn: len(t.Turns), Status: string(t.Status), Started: float64(t.StartedAt.UnixMilli()) / 1000}
	if n := len(t.Turns); n > 0 {
		item.Last = shortText(t.Turns[n-1].Message)
	}
	return item
}

// shortText is the first call's arguments as text, or the content.
func shortText(m trajectory.Message) string {
	s := m.Content
	if len(m.ToolCalls) > 0 {
		s = m.ToolCalls[0].Arguments
		var args map[string]any
		if json.Unmarshal([]byte(s), &args) == nil && len(args) == 1 {
			for _, v := range args {
				if text, ok := v.(string); ok {
					s = text
				}
			}
		}
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	for len(s) > maxLast {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return s
}

// status announces where the run stands; without urgent at most a few times a second.
func (f *feed) status(ctx context.Context, phase experiment.Phase, urgent bool) {
	l := f.l
	now := l.d.Now()
	f.mu.Lock()
	if !urgent && now.Sub(f.last) < statusEvery {
		f.mu.Unlock()
		return
	}
	f.last = now
	f.mu.Unlock()
	item := live.StatusItem{RunID: l.run.ID, State: string(experiment.Running), Phase: string(phase), Attempt: l.lease.Attempt,
		Step: l.st.Step, Steps: int64(l.cfg.Budget.Steps), Warmup: l.st.WarmupStep, Warmups: l.st.WarmupSteps, ETA: l.eta(phase),
		Reward: math.Max(l.st.RewardMean, -1), Pass: l.st.PassRate, Eval: l.st.PassEnd}
	if l.stopping() {
		item.State = string(experiment.Stopping)
	}
	if l.pipe != nil {
		s := l.pipe.Stats()
		item.InFlight, item.Waiting, item.Buffered = s.Running, s.Waiting, s.Buffered
	}
	l.publish(ctx, live.StatusTopic(l.run.ID), live.State, item)
}

// eta is the seconds that are left, or -1 while the pace of the present phase is not known. During the warm start it is
// the time to its end.
func (l *loop) eta(phase experiment.Phase) float64 {
	if phase == experiment.PhaseDone {
		return 0
	}
	if l.st.StepSeconds == 0 {
		return -1
	}
	if phase == experiment.PhaseWarmup {
		return float64(l.st.WarmupSteps-l.st.WarmupStep) * l.st.StepSeconds
	}
	left := math.Inf(1)
	if n := l.cfg.Budget.Steps; n > 0 {
		left = float64(int64(n)-l.st.Step) * l.st.StepSeconds
	}
	if w := l.cfg.Budget.WallTime; w > 0 {
		left = math.Min(left, math.Max(0, w.Std().Seconds()-l.st.RLSeconds-l.rlElapsed()))
	}
	if math.IsInf(left, 1) {
		return -1
	}
	return left
}

// published announces what a commit stored.
func (l *loop) published(ctx context.Context, c experiment.StepCommit) {
	items := make([]any, 0, len(c.Points))
	for _, p := range c.Points {
		item := live.MetricItem{Metric: p.Metric, Attempt: l.lease.Attempt, Step: p.Step, Time: float64(p.Time.UnixMilli()) / 1000}
		if v := p.Value; !math.IsNaN(v) && !math.IsInf(v, 0) {
			item.Value = &v
		}
		items = append(items, item)
	}
	l.publish(ctx, live.MetricsTopic(l.run.ID), live.Delta, items...)
	groups := make([]any, 0, len(c.Groups))
	for _, g := range c.Groups {
		groups = append(groups, g)
	}
	l.publish(ctx, live.GroupsTopic(l.run.ID), live.Delta, groups...)
}
