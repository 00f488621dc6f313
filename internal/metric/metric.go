// Package metric is the domain of measured series: points, buckets with exact extremes, levels and statistics.
package metric

import (
	"math"
	"time"
)

// Point is one logged value. Tokens and Samples are the run's totals at that moment, for the other x axes.
type Point struct {
	Metric  string
	Step    int64
	Time    time.Time
	Tokens  int64
	Samples int64
	Value   float64 // NaN is legal and counted
}

// Axis is what x means in a query.
type Axis string

// The axes of dashboard.md 5.
const (
	ByStep    Axis = "step"
	ByTime    Axis = "time" // seconds since the Unix epoch
	ByTokens  Axis = "tokens"
	BySamples Axis = "samples"
)

// Bucket is a stretch of a series. Min and Max are exact; the mean is Sum/Count. NaN values count in NaN only.
type Bucket struct {
	X0    float64 `json:"x0"`
	X1    float64 `json:"x1"`
	First float64 `json:"first"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	Last  float64 `json:"last"`
	Sum   float64 `json:"sum"`
	Count int64   `json:"count"`
	NaN   int64   `json:"nan"`
}

// Add merges a later bucket into b.
func (b *Bucket) Add(o Bucket) {
	if b.Count+b.NaN == 0 {
		*b = o
		return
	}
	if o.Count > 0 {
		if b.Count == 0 {
			b.First, b.Min, b.Max = o.First, o.Min, o.Max
		}
		b.Min, b.Max, b.Last = math.Min(b.Min, o.Min), math.Max(b.Max, o.Max), o.Last
	}
	b.Sum += o.Sum
	b.Count += o.Count
	b.NaN += o.NaN
	b.X1 = o.X1
}

// Query asks for one metric of several runs in at most Px buckets each. From and To bound x; NaN leaves a side open.
type Query struct {
	Runs   []int64
	Metric string
	X      Axis
	From   float64
	To     float64
	Px     int
}

// Series is the answer for one run. Faint series are tails of older attempts that a resume left behind.
type Series struct {
	RunID   int64    `json:"run"`
	Metric  string   `json:"metric"`
	Attempt int      `json:"attempt,omitempty"` // of a faint tail; 0 for the winning lineage
	Faint   bool     `json:"faint,omitempty"`
	Level   int      `json:"level"`
	Exact   bool     `json:"exact"`
	Seq     int64    `json:"seq"` // live cursor of run/{id}/metrics to continue from
	Buckets []Bucket `json:"buckets"`
}

// Summary is the maintained row per (run, metric).
type Summary struct {
	RunID     int64   `json:"run"`
	Metric    string  `json:"metric"`
	N         int64   `json:"n"`
	Last      float64 `json:"last"`
	Min       float64 `json:"min"`
	Max       float64 `json:"max"`
	FirstStep int64   `json:"first_step"`
	LastStep  int64   `json:"last_step"`
	NaN       int64   `json:"nan"`
}
