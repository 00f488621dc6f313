package templates

import (
	"encoding/json"
	"strings"

	"agentrl/internal/metric"
	"agentrl/internal/trajectory"
)

// ChartSeries is one line of a chart. Style numbers a colour and dash; Low and High name the metrics of its band.
type ChartSeries struct {
	Metric string `json:"metric"`
	Label  string `json:"label"`
	Style  int    `json:"style"`
	Dots   bool   `json:"dots,omitempty"` // points instead of a line
	Low    string `json:"low,omitempty"`
	High   string `json:"high,omitempty"`
	Spread string `json:"spread,omitempty"` // metric of the deviation around it, drawn as a band
	Raw    bool   `json:"raw,omitempty"`    // never smoothed
}

// ChartSpec describes a chart; the browser asks the series query for its points when it becomes visible.
type ChartSpec struct {
	ID      string        `json:"id"`
	Title   string        `json:"title"`
	Over    string        `json:"over"` // what is averaged over what
	Unit    string        `json:"unit,omitempty"`
	Range   string        `json:"range,omitempty"` // "rate": y from 0 to 1
	Stack   bool          `json:"stack,omitempty"`
	PerTask bool          `json:"per_task,omitempty"` // series exist per task too
	X       string        `json:"x,omitempty"`        // label of the x axis
	Series  []ChartSeries `json:"series"`
	Wide    bool          `json:"-"`
}

// JSON is the description as the browser reads it.
func (c ChartSpec) JSON() string {
	b, _ := json.Marshal(c) // plain strings and numbers cannot fail
	return string(b)
}

// RunCharts are the charts of a run's overview in their order. The warm start stands first and wide while it goes on.
func RunCharts(warmup, warming bool) []ChartSpec {
	end := ChartSpec{ID: "end", Title: "End states", Over: "share of the step's trajectories", Range: "rate", Stack: true}
	for i, s := range trajectory.EndStates() {
		end.Series = append(end.Series, ChartSeries{Metric: metric.EndStatePrefix + string(s), Label: endShort(s), Style: i, Raw: true})
	}
	loss := ChartSpec{ID: "warmup", Title: "Warm start", Over: "loss per token, one supervised step", X: "warm-start step",
		Series: []ChartSeries{{Metric: metric.WarmupLoss, Label: "loss", Style: 0}}}
	all := []ChartSpec{
		{ID: "pass", Title: "Pass rate", Over: "mean over the step's trajectories; evaluation over unseen samples with 95 % band", Range: "rate", Wide: true, PerTask: true,
			Series: []ChartSeries{
				{Metric: metric.PassRate, Label: "training", Style: 0},
				{Metric: metric.EvalPass, Label: "evaluation", Style: 1, Dots: true, Low: metric.EvalLow, High: metric.EvalHigh, Raw: true},
			}},
		{ID: "reward", Title: "Reward", Over: "mean ± deviation over the step's trajectories", PerTask: true,
			Series: []ChartSeries{{Metric: metric.RewardMean, Label: "mean", Style: 0, Spread: metric.RewardStd}}},
		{ID: "stale", Title: "Staleness", Over: "updates between writing and training", Unit: "updates",
			Series: []ChartSeries{{Metric: metric.StalenessMean, Label: "mean", Style: 0}, {Metric: metric.StalenessMax, Label: "oldest", Style: 1, Raw: true}}},
		end,
		{ID: "throughput", Title: "Throughput", Over: "tokens per second, over the step", Unit: "tok/s",
			Series: []ChartSeries{{Metric: metric.SampledTokensPS, Label: "sampled", Style: 0}, {Metric: metric.TrainedTokensPS, Label: "trained", Style: 2}}},
	}
	switch {
	case warming:
		loss.Wide, all[0].Wide = true, false
		all[0].Over = "mean over the step's trajectories"
		all = append([]ChartSpec{loss}, all...)
	case warmup:
		all = append(all, loss)
	}
	return append(all,
		ChartSpec{ID: "equal", Title: "Groups without signal", Over: "share of groups whose rewards are all equal", Series: []ChartSeries{{Metric: metric.GroupsEqual, Label: "all equal", Style: 0}}},
		ChartSpec{ID: "dropped", Title: "Dropped as stale", Over: "tokens per step, not trained on", Unit: "tokens", Series: []ChartSeries{{Metric: metric.DroppedStale, Label: "dropped", Style: 3, Raw: true}}},
		ChartSpec{ID: "entropy", Title: "Entropy", Over: "mean over trained tokens", Unit: "nats", Series: []ChartSeries{{Metric: metric.Entropy, Label: "entropy", Style: 2}}},
		ChartSpec{ID: "grad", Title: "Gradient norm", Over: "before clipping, one update", Series: []ChartSeries{{Metric: metric.GradNorm, Label: "norm", Style: 0}}},
		ChartSpec{ID: "turns", Title: "Turns", Over: "mean over the step's trajectories", Unit: "turns", Series: []ChartSeries{{Metric: metric.Turns, Label: "turns", Style: 0}}},
		ChartSpec{ID: "clip", Title: "Clipped tokens", Over: "share of trained tokens", Series: []ChartSeries{{Metric: metric.ClipFraction, Label: "clipped", Style: 1}}},
	)
}

// endShort is an end state as a legend has room for it.
func endShort(s trajectory.EndState) string {
	switch s {
	case trajectory.EndTaskLimit:
		return "task limit"
	case trajectory.EndContextLimit:
		return "context limit"
	case trajectory.EndValidationFailed:
		return "validation failed"
	case trajectory.EndInvalidAction:
		return "invalid action"
	}
	return strings.ToLower(string(s))
}
