package rollout

import (
	"context"
	"slices"
	"sync"
	"time"

	"agentrl/internal/policy"
	"agentrl/internal/trajectory"
)

// Why trajectories are not trained on; they appear as Trajectory.Dropped and as keys of Counts.
const (
	reasonInfrastructure = "infrastructure"
	reasonTimeout        = "group timeout"
	reasonSmall          = "group too small"
	reasonStopped        = "stopped"
)

// PipelineOptions configure a Pipeline. Bounds are trajectories except where said otherwise.
type PipelineOptions struct {
	Play         func(ctx context.Context, s Slot) *trajectory.Trajectory // Player.Play
	Mixer        *Mixer
	Requeue      []Draw // draws of an earlier attempt that were under way, played first
	Sync         bool   // dispatch only what Take asks for
	GroupSize    int
	GroupMin     int
	Gate         int // groups dispatched and not yet resolved; unused when Sync
	Concurrency  int
	QueueMax     int
	BufferMax    int
	Retries      int             // tries per slot
	Backoff      []time.Duration // before each retry; the last entry repeats
	Seed         uint64          // of the jitter
	GroupTimeout time.Duration
	Now          func() time.Time
}

// Counts are trajectories since the start of the run. In = Trained + all Dropped + all Excluded + in flight, at any
// time.
type Counts struct {
	In       int64            `json:"in"`
	Trained  int64            `json:"trained"`
	Dropped  map[string]int64 `json:"dropped"`
	Excluded map[string]int64 `json:"excluded"`
}

// Clone returns a copy.
func (c Counts) Clone() Counts {
	out := Counts{In: c.In, Trained: c.Trained, Dropped: map[string]int64{}, Excluded: map[string]int64{}}
	for k, v := range c.Dropped {
		out.Dropped[k] = v
	}
	for k, v := range c.Excluded {
		out.Excluded[k] = v
	}
	return out
}

// Settled is everything that is no longer in flight.
func (c Counts) Settled() int64 {
	n := c.Trained
	for _, v := range c.Dropped {
		n += v
	}
	for _, v := range c.Excluded {
		n += v
	}
	return n
}

// Stats is what the pipeline holds now.
type Stats struct {
	Running  int // episodes being played
	Queued   int // episodes waiting for a place
	Waiting  int // groups with members under way
	Buffered int // complete groups
	Handed   int // groups that the trainer took and has not resolved
	InFlight int // trajectories in all of these
}

// Pipeline plays groups ahead of the trainer: draws -> queue -> episodes -> side table -> buffer -> Take. All its state
// is behind one lock, and pump moves everything that can move whenever something has changed.
type Pipeline struct {
	opt PipelineOptions

	mu       sync.Mutex
	ctx      context.Context
	cancel   context.CancelFunc
	changed  chan struct{} // closed and replaced when a group closes or the pipeline stops
	started  bool
	stopped  bool
	want     int // sync: groups that may still be dispatched
	held     int // groups dispatched and not resolved
	requeue  []Draw
	slots    []Slot
	running  int
	backoff  map[*time.Timer]struct{}
	backoffs int // slots that wait for their retry
	open     map[int64]*openGroup
	ready    []*Group // complete, but the buffer is full
	buffer   []*Group
	buffered int // trajectories in buffer
	handed   map[int64]*Group
	aside    []*trajectory.Trajectory
	counts   Counts
	wait     sync.WaitGroup
	faulty   map[sampleKey]map[int64]struct{} // draws of a sample that ended in a task error
}

type sampleKey struct {
	task   string
	sample int64
}

// quarantineAfter is the number of draws of one sample with a task error after which it is no longer drawn.
const quarantineAfter = 3

// NewPipeline prepares a pipeline; counts continue those of an earlier attempt.
func NewPipeline(opt PipelineOptions, counts Counts) *Pipeline {
	return &Pipeline{opt: opt, changed: make(chan struct{}), requeue: slices.Clone(opt.Requeue),
		backoff: map[*time.Timer]struct{}{}, open: map[int64]*openGroup{}, handed: map[int64]*Group{}, counts: counts.Clone(),
		faulty: map[sampleKey]map[int64]struct{}{}}
}

// Start begins to play; it is idempotent.
func (p *Pipeline) Start(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started || p.stopped {
		return
	}
	p.started = true
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.pump()
}

// Stop cancels everything under way and returns when no episode runs any more. It is idempotent.
func (p *Pipeline) Stop() {
	p.mu.Lock()
	if !p.stopped {
		p.stopped = true
		if p.cancel != nil {
			p.cancel()
		}
		for t := range p.backoff {
			t.Stop()
		}
		for _, g := range p.open {
			if g.timer != nil {
				g.timer.Stop()
			}
			g.cancel()
		}
		p.signal()
	}
	p.mu.Unlock()
	p.wait.Wait()
}

// pump moves what can move; the lock is held.
func (p *Pipeline) pump() {
	if !p.started || p.stopped {
		return
	}
	for len(p.ready) > 0 && (p.buffered == 0 || p.buffered+len(p.ready[0].Members) <= p.opt.BufferMax) {
		g := p.ready[0]
		p.ready = p.ready[1:]
		p.buffer = append(p.buffer, g)
		p.buffered += len(g.Members)
		p.signal()
	}
	for p.mayDispatch() {
		p.dispatch()
	}
	for p.running < p.opt.Concurrency && len(p.slots) > 0 {
		s := p.slots[0]
		p.slots = p.slots[1:]
		g := p.open[s.Draw.ID]
		p.running++
		p.wait.Add(1)
		go p.play(g, s)
	}
}

// mayDispatch holds the gate: a full buffer, a full queue or too many unresolved groups stop new draws.
func (p *Pipeline) mayDispatch() bool {
	if p.opt.Sync {
		return p.want > 0
	}
	return len(p.ready) == 0 && p.held < p.opt.Gate && p.running+len(p.slots)+p.backoffs < p.opt.Concurrency &&
		len(p.slots)+p.opt.GroupSize <= p.opt.QueueMax
}

func (p *Pipeline) dispatch() {
	var d Draw
	if len(p.requeue) > 0 {
		d = p.requeue[0]
		p.requeue = p.requeue[1:]
	} else {
		d = p.opt.Mixer.Next()
		for range 1000 {
			if len(p.faulty[sampleKey{d.Task, d.Sample}]) < quarantineAfter {
				break
			}
			d = p.opt.Mixer.Next()
		}
	}
	if p.opt.Sync {
		p.want--
	}
	p.held++
	g := &openGroup{Group: Group{Draw: d, Planned: p.opt.GroupSize, Dispatched: p.opt.Now()}, left: p.opt.GroupSize}
	g.ctx, g.cancel = context.WithCancel(p.ctx)
	p.open[d.ID] = g
	for m := range p.opt.GroupSize {
		// A group that is queued again continues the numbering of tries, so that ids stay unique.
		p.slots = append(p.slots, Slot{Draw: d, Member: m, Retry: d.Requeued * p.opt.Retries})
		p.counts.In++
	}
}

func (p *Pipeline) play(g *openGroup, s Slot) {
	defer p.wait.Done()
	t := p.opt.Play(g.ctx, s)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running--
	p.ended(g, s, t)
	p.pump()
}

// ended books the end of one episode; the lock is held.
func (p *Pipeline) ended(g *openGroup, s Slot, t *trajectory.Trajectory) {
	if p.stopped {
		p.counts.Excluded[reasonStopped]++
		return
	}
	if t.Status.Class() == trajectory.ClassInfrastructure {
		p.failed(g, s, t)
		p.close(g)
		return
	}
	g.Members = append(g.Members, t)
	g.left--
	if g.timer == nil && g.left > 0 {
		g.timer = time.AfterFunc(p.opt.GroupTimeout, func() { p.expire(g) })
	}
	p.close(g)
}

// failed books a failure that is not the agent's: the slot is tried again, on a new episode, until its tries are used.
func (p *Pipeline) failed(g *openGroup, s Slot, t *trajectory.Trajectory) {
	reason := reasonInfrastructure
	if g.timedOut {
		reason = reasonTimeout
	}
	t.Dropped = reason
	p.counts.Excluded[reason]++
	p.setAside(t)
	if t.Status == trajectory.TaskError {
		key := sampleKey{s.Draw.Task, s.Draw.Sample}
		if p.faulty[key] == nil {
			p.faulty[key] = map[int64]struct{}{}
		}
		p.faulty[key][s.Draw.ID] = struct{}{}
	}
	tried := s.Retry - s.Draw.Requeued*p.opt.Retries + 1
	if g.timedOut || tried >= p.opt.Retries {
		g.left--
		return
	}
	s.Retry++
	p.counts.In++
	p.backoffs++
	var timer *time.Timer
	timer = time.AfterFunc(p.delay(s, tried), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.backoff, timer)
		p.backoffs--
		switch {
		case p.stopped:
			p.counts.Excluded[reasonStopped]++
		case g.timedOut:
			p.counts.Excluded[reasonTimeout]++
			g.left--
			p.close(g)
		default:
			p.slots = append([]Slot{s}, p.slots...)
		}
		p.pump()
	})
	p.backoff[timer] = struct{}{}
}

// delay is the back-off before a retry with up to half of it as jitter.
func (p *Pipeline) delay(s Slot, tried int) time.Duration {
	if len(p.opt.Backoff) == 0 {
		return 0
	}
	d := p.opt.Backoff[min(tried, len(p.opt.Backoff))-1]
	u := policy.Uniform(policy.Hash(p.opt.Seed, uint64(s.Draw.ID), uint64(s.Member), uint64(s.Retry)))
	return d + time.Duration(u*float64(d)/2)
}

// maxAside bounds the failed episodes that wait to be stored; the counts know them all.
const maxAside = 1000

func (p *Pipeline) setAside(t *trajectory.Trajectory) {
	if len(p.aside) < maxAside {
		p.aside = append(p.aside, t)
	}
}

// signal wakes Take; the lock is held.
func (p *Pipeline) signal() {
	close(p.changed)
	p.changed = make(chan struct{})
}
