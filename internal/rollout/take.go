package rollout

import (
	"context"
	"errors"
	"slices"
	"time"

	"agentrl/internal/trajectory"
)

// ErrStopped is returned by Take when the pipeline was stopped.
var ErrStopped = errors.New("the rollouts were stopped")

// Take waits for least complete groups and hands over everything that is ready, in the order of completion, at most
// most (0: no bound). In synchronous mode it dispatches exactly least draws, waits for all of them and returns their
// groups in draw order; draws whose group came apart are replaced by further ones.
//
// Every group that is handed over must be given back through Resolve.
func (p *Pipeline) Take(ctx context.Context, least, most int) ([]*Group, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		if p.stopped {
			return nil, ErrStopped
		}
		if p.opt.Sync {
			if missing := least - len(p.buffer) - len(p.ready) - len(p.open); missing > 0 {
				p.want = missing
			}
			p.pump()
			if len(p.open) == 0 && len(p.buffer)+len(p.ready) >= least {
				return p.hand(least), nil
			}
		} else if len(p.buffer) >= least {
			n := len(p.buffer)
			if most > 0 {
				n = min(n, most)
			}
			return p.hand(n), nil
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		p.mu.Lock()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// hand moves n groups from the buffer to the trainer; the lock is held.
func (p *Pipeline) hand(n int) []*Group {
	if p.opt.Sync {
		p.buffer = append(p.buffer, p.ready...)
		for _, g := range p.ready {
			p.buffered += len(g.Members)
		}
		p.ready = nil
		slices.SortFunc(p.buffer, func(a, b *Group) int { return int(a.Draw.ID - b.Draw.ID) })
	}
	out := slices.Clone(p.buffer[:n])
	p.buffer = slices.Clone(p.buffer[n:])
	for _, g := range out {
		p.buffered -= len(g.Members)
		p.handed[g.Draw.ID] = g
	}
	p.pump()
	return out
}

// Resolve gives a handed group back: members whose Dropped is set count as dropped for that reason, the others as
// trained. requeue plays the draw once more, unless it already was.
func (p *Pipeline) Resolve(g *Group, requeue bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.handed[g.Draw.ID] != g {
		return
	}
	delete(p.handed, g.Draw.ID)
	p.held--
	for _, t := range g.Members {
		if t.Dropped != "" {
			p.counts.Dropped[t.Dropped]++
		} else {
			p.counts.Trained++
		}
	}
	if requeue && g.Draw.Requeued == 0 {
		d := g.Draw
		d.Requeued++
		p.requeue = append(p.requeue, d)
	}
	p.pump()
}

// Aside returns the episodes that ended without entering a batch since the last call: failures that are not the
// agent's, and members of groups that came apart. They are stored, flagged as not trained.
func (p *Pipeline) Aside() []*trajectory.Trajectory {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.aside
	p.aside = nil
	return out
}

// Stats returns what the pipeline holds.
func (p *Pipeline) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Running: p.running, Queued: len(p.slots), Waiting: len(p.open), Buffered: len(p.buffer) + len(p.ready), Handed: len(p.handed)}
	s.InFlight = p.running + len(p.slots) + p.backoffs
	for _, g := range p.open {
		s.InFlight += len(g.Members)
	}
	for _, list := range [][]*Group{p.buffer, p.ready} {
		for _, g := range list {
			s.InFlight += len(g.Members)
		}
	}
	for _, g := range p.handed {
		s.InFlight += len(g.Members)
	}
	return s
}

// Table lists the groups that wait for members, oldest draw first.
func (p *Pipeline) Table() []Waiting {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := make([]Waiting, 0, len(p.open))
	for _, g := range p.open {
		out = append(out, Waiting{Draw: g.Draw, Ended: len(g.Members), Size: g.Planned, Since: g.Dispatched})
	}
	slices.SortFunc(out, func(a, b Waiting) int { return int(a.Draw.ID - b.Draw.ID) })
	return out
}

// Counts returns the totals.
func (p *Pipeline) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts.Clone()
}

// Quarantined lists the samples that are no longer drawn because they keep ending in a task error.
func (p *Pipeline) Quarantined() []Draw {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []Draw
	for k, draws := range p.faulty {
		if len(draws) >= quarantineAfter {
			out = append(out, Draw{Task: k.task, Sample: k.sample})
		}
	}
	return out
}

// Position is what a checkpoint needs: where the mixer stands, the draws that were dispatched and are not resolved, in
// draw order, and the totals with everything under way taken back.
type Position struct {
	Mixer  MixerState `json:"mixer"`
	Draws  []Draw     `json:"draws"`
	Counts Counts     `json:"counts"`
}

// Position returns the present position. A pipeline that is started from it plays the unresolved draws again, first.
func (p *Pipeline) Position() Position {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := Position{Mixer: p.opt.Mixer.State(), Counts: p.counts.Clone(), Draws: slices.Clone(p.requeue)}
	add := func(d Draw) { out.Draws = append(out.Draws, d) }
	for _, g := range p.open {
		add(g.Draw)
	}
	for _, list := range [][]*Group{p.buffer, p.ready} {
		for _, g := range list {
			add(g.Draw)
		}
	}
	for _, g := range p.handed {
		add(g.Draw)
	}
	slices.SortFunc(out.Draws, func(a, b Draw) int { return int(a.ID - b.ID) })
	out.Counts.In = out.Counts.Settled()
	return out
}

// DefaultBackoff is the wait before each retry of a slot (method.md 5).
func DefaultBackoff() []time.Duration {
	return []time.Duration{time.Second, 4 * time.Second, 16 * time.Second}
}
