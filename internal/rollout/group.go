package rollout

import (
	"context"
	"slices"
	"time"

	"agentrl/internal/trajectory"
)

// Group is the closed group of one draw: every member that ended in a way that can be trained on, in member order.
type Group struct {
	Draw       Draw
	Planned    int
	Members    []*trajectory.Trajectory
	Dispatched time.Time
	Closed     time.Time
}

// Rewards returns the training rewards of the members.
func (g *Group) Rewards() []float64 {
	out := make([]float64, len(g.Members))
	for i, t := range g.Members {
		out[i] = t.Reward
	}
	return out
}

// openGroup is a row of the side table: a draw some of whose members are still under way.
type openGroup struct {
	Group
	ctx      context.Context
	cancel   context.CancelFunc
	left     int // members that have not ended for good
	timer    *time.Timer
	timedOut bool
}

// Waiting describes a row of the side table for the page.
type Waiting struct {
	Draw  Draw
	Ended int
	Size  int
	Since time.Time
}

// expire closes the group's door when its time is up: running members are cancelled, waiting ones forgotten.
func (p *Pipeline) expire(g *openGroup) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open[g.Draw.ID] != g || g.timedOut {
		return
	}
	g.timedOut = true
	g.cancel()
	before := len(p.slots)
	p.slots = slices.DeleteFunc(p.slots, func(s Slot) bool { return s.Draw.ID == g.Draw.ID })
	for range before - len(p.slots) {
		p.counts.Excluded[reasonTimeout]++
		g.left--
	}
	p.close(g)
	p.pump()
}

// close moves a group without missing members out of the side table; the lock is held.
func (p *Pipeline) close(g *openGroup) {
	if g.left > 0 || p.open[g.Draw.ID] != g {
		return
	}
	delete(p.open, g.Draw.ID)
	defer p.signal()
	if g.timer != nil {
		g.timer.Stop()
	}
	g.cancel()
	slices.SortFunc(g.Members, func(a, b *trajectory.Trajectory) int { return a.Member - b.Member })
	g.Closed = p.opt.Now()
	if len(g.Members) >= p.opt.GroupMin || len(g.Members) == g.Planned {
		done := g.Group
		p.ready = append(p.ready, &done)
		return
	}
	for _, t := range g.Members {
		t.Dropped = reasonSmall
		p.counts.Dropped[reasonSmall]++
		p.setAside(t)
	}
	p.held--
	if g.Draw.Requeued == 0 {
		d := g.Draw
		d.Requeued++
		p.requeue = append(p.requeue, d)
	}
}
