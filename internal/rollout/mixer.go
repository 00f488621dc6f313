// Package rollout plays episodes: it draws samples from the task mix, runs members of groups at the same time under a
// limit, lets the policy pool write each turn, and hands complete groups to the trainer.
package rollout

import (
	"math/bits"

	"agentrl/internal/errs"
	"agentrl/internal/policy"
)

// Draw is one drawing of a sample; its episodes form a group. ID counts from 0 per run and never changes, also when the
// draw is played again by a later attempt.
type Draw struct {
	ID       int64  `json:"id"`
	Task     string `json:"task"`
	Sample   int64  `json:"sample"`
	Requeued int    `json:"requeued,omitempty"` // times that its group came apart and the draw was queued again
}

// MixTask is a task of the mix with its number of samples.
type MixTask struct {
	Task    string
	Weight  float64
	Samples int64
}

// Mixer is an endless, seeded sequence of draws: tasks interleaved by weight, and per task shuffled passes over all its
// samples. Not safe for concurrent use.
type Mixer struct {
	seed   uint64
	tasks  []MixTask
	sum    float64
	counts []int64
	next   int64
}

// MixerState is a position in the sequence.
type MixerState struct {
	Next   int64            `json:"next"`
	Counts map[string]int64 `json:"counts"`
}

// NewMixer starts a sequence. Tasks of weight 0 are left out.
func NewMixer(tasks []MixTask, seed uint64) (*Mixer, error) {
	m := &Mixer{seed: seed}
	for _, t := range tasks {
		if t.Weight <= 0 {
			continue
		}
		if t.Samples <= 0 {
			return nil, errs.Field("tasks", "task %q has no samples", t.Task)
		}
		m.tasks = append(m.tasks, t)
		m.sum += t.Weight
	}
	if len(m.tasks) == 0 {
		return nil, errs.Field("tasks", "all weights are zero; at least one must be positive")
	}
	m.counts = make([]int64, len(m.tasks))
	return m, nil
}

// Next returns the next draw. The task is the one that lags most behind its share, so any stretch of the sequence is
// close to the weights.
func (m *Mixer) Next() Draw {
	best, lag := 0, 0.0
	for i, t := range m.tasks {
		if l := t.Weight/m.sum*float64(m.next+1) - float64(m.counts[i]); i == 0 || l > lag {
			best, lag = i, l
		}
	}
	t := m.tasks[best]
	pass, at := m.counts[best]/t.Samples, m.counts[best]%t.Samples
	d := Draw{ID: m.next, Task: t.Task, Sample: Permute(policy.Hash(m.seed, hashText(t.Task), uint64(pass)), t.Samples, at)}
	m.counts[best]++
	m.next++
	return d
}

// State returns the position.
func (m *Mixer) State() MixerState {
	s := MixerState{Next: m.next, Counts: map[string]int64{}}
	for i, t := range m.tasks {
		s.Counts[t.Task] = m.counts[i]
	}
	return s
}

// Restore moves to a position of a mixer over the same tasks.
func (m *Mixer) Restore(s MixerState) error {
	var sum int64
	counts := make([]int64, len(m.tasks))
	for i, t := range m.tasks {
		counts[i] = s.Counts[t.Task]
		sum += counts[i]
	}
	if sum != s.Next || s.Next < 0 {
		return errs.New(errs.Invalid, "the saved position of the task mix does not fit its tasks")
	}
	m.counts, m.next = counts, s.Next
	return nil
}

// Permute returns the place of i in a shuffle of [0, n) that key names, in constant memory: a four-round Feistel network
// over the next power of four, walked until the value falls below n.
func Permute(key uint64, n, i int64) int64 {
	if n <= 1 {
		return 0
	}
	half := (bits.Len64(uint64(n-1)) + 1) / 2
	mask := uint64(1)<<half - 1
	v := uint64(i)
	for {
		l, r := v>>half, v&mask
		for round := range uint64(4) {
			l, r = r, l^policy.Hash(key, round, r)&mask
		}
		v = l<<half | r
		if v < uint64(n) {
			return int64(v)
		}
	}
}

func hashText(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
