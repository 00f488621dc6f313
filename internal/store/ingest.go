package store

import (
	"math"
	"sort"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/metric"
)

// seriesRow is the growing end of the series of one attempt and metric.
type seriesRow struct {
	ID          int64 `gorm:"primaryKey"`
	RunID       int64
	Attempt     int
	Metric      string
	N           int64
	LastStep    int64
	LastTime    int64
	LastTokens  int64
	LastSamples int64
	Tail        []byte
	Levels      []byte
}

func (seriesRow) TableName() string { return "metric_series" }

type chunkRow struct {
	SeriesID int64 `gorm:"primaryKey;autoIncrement:false"`
	Level    int   `gorm:"primaryKey;autoIncrement:false"`
	Idx      int64 `gorm:"primaryKey;autoIncrement:false"`
	Data     []byte
}

func (chunkRow) TableName() string { return "metric_chunks" }

func (r seriesRow) levels() (*metric.Levels, error) {
	last := metric.Sample{X: [4]int64{r.LastStep, r.LastTime, r.LastTokens, r.LastSamples}}
	return metric.DecodeLevels(r.N, last, r.Tail, r.Levels)
}

// reader returns a reader of the series that fetches rows through db.
func (r seriesRow) reader(db *gorm.DB) (*metric.Reader, error) {
	l, err := r.levels()
	if err != nil {
		return nil, err
	}
	return metric.NewReader(l, func(level int, from, to int64) ([][]byte, error) {
		var rows []chunkRow
		err := db.Select("idx", "data").Where("series_id = ? AND level = ? AND idx >= ? AND idx < ?", r.ID, level, from, to).
			Order("idx").Find(&rows).Error
		out := make([][]byte, len(rows))
		for i := range rows {
			out[i] = rows[i].Data
		}
		return out, err
	}), nil
}

// byMetric sorts the points of a commit into series, each in step order.
func byMetric(points []metric.Point) (map[string][]metric.Sample, []string, error) {
	out := map[string][]metric.Sample{}
	var names []string
	for _, p := range points {
		if p.Metric == "" || text(p.Metric) != p.Metric || len(p.Metric) > 500 {
			return nil, nil, errs.Field("metric", "%q is not a metric name: 1 to 500 bytes of UTF-8", p.Metric)
		}
		if _, ok := out[p.Metric]; !ok {
			names = append(names, p.Metric)
		}
		out[p.Metric] = append(out[p.Metric], metric.SampleOf(p))
	}
	for _, list := range out {
		sort.SliceStable(list, func(i, j int) bool { return list[i].Step() < list[j].Step() })
	}
	sort.Strings(names)
	return out, names, nil
}

// appendPoints adds points to their series and keeps the summaries.
func appendPoints(tx *gorm.DB, l experiment.Lease, points []metric.Point) error {
	samples, names, err := byMetric(points)
	if err != nil || len(names) == 0 {
		return err
	}
	known := map[string]seriesRow{}
	sums := map[string]metric.Summary{}
	for part := range chunked(names, 200) {
		var rows []seriesRow
		if err := tx.Where("run_id = ? AND attempt = ? AND metric IN ?", l.RunID, l.Attempt, part).Find(&rows).Error; err != nil {
			return err
		}
		for _, r := range rows {
			known[r.Metric] = r
		}
		var old []summaryRow
		if err := tx.Where("run_id = ? AND metric IN ?", l.RunID, part).Find(&old).Error; err != nil {
			return err
		}
		for _, r := range old {
			sums[r.Metric] = r.summary()
		}
	}
	var chunks []chunkRow
	var changed []summaryRow
	for _, name := range names {
		row, ok := known[name]
		if !ok {
			row = seriesRow{RunID: l.RunID, Attempt: l.Attempt, Metric: name, Tail: []byte{}, Levels: []byte{}}
			if err := tx.Create(&row).Error; err != nil {
				return err
			}
		}
		lv, err := row.levels()
		if err != nil {
			return err
		}
		fresh, err := appendNew(tx, row, lv, samples[name])
		if err != nil {
			return err
		}
		if len(fresh) == 0 {
			continue
		}
		for _, full := range lv.TakeRows() {
			chunks = append(chunks, chunkRow{SeriesID: row.ID, Level: full.Level, Idx: full.Index, Data: full.Data})
		}
		err = tx.Exec("UPDATE metric_series SET n = ?, last_step = ?, last_time = ?, last_tokens = ?, last_samples = ?, tail = ?, levels = ? WHERE id = ?",
			lv.N, lv.Last.X[0], lv.Last.X[1], lv.Last.X[2], lv.Last.X[3], metric.EncodeSamples(lv.Tail), lv.EncodeOpen(), row.ID).Error
		if err != nil {
			return err
		}
		sum, ok := sums[name]
		if !ok {
			sum = metric.NewSummary(l.RunID, name)
		}
		for _, v := range fresh {
			if sum.N == 0 || v.Step() > sum.LastStep { // else an earlier attempt's point at this step counts
				sum.AddCell(metric.CellOf(v))
			}
		}
		changed = append(changed, summaryToRow(sum))
	}
	if len(chunks) > 0 {
		if err := tx.CreateInBatches(&chunks, 100).Error; err != nil {
			return err
		}
	}
	return saveSummaries(tx, changed)
}

// appendNew appends the samples beyond the series' last step and returns them as they are stored. Samples at stored
// steps must repeat what is stored.
func appendNew(tx *gorm.DB, row seriesRow, lv *metric.Levels, list []metric.Sample) ([]metric.Sample, error) {
	var fresh []metric.Sample
	for _, v := range list {
		if lv.N == 0 || v.Step() > lv.Last.Step() {
			lv.Append(v)
			fresh = append(fresh, lv.Last)
			continue
		}
		old, ok, err := storedSample(tx, row, lv, fresh, v.Step())
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errs.New(errs.Conflict, "metric %s: step %d comes after step %d; steps of a metric must grow within an attempt", row.Metric, v.Step(), lv.Last.Step())
		}
		if old != v.Value && !(math.IsNaN(old) && math.IsNaN(v.Value)) {
			return nil, errs.New(errs.Conflict, "metric %s has another value at step %d already", row.Metric, v.Step())
		}
	}
	return fresh, nil
}

// storedSample finds the value at a step of the series, in what was just appended or in what was stored before.
func storedSample(tx *gorm.DB, row seriesRow, lv *metric.Levels, fresh []metric.Sample, step int64) (float64, bool, error) {
	for _, list := range [][]metric.Sample{fresh, lv.Tail} {
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].Step() == step {
				return list[i].Value, true, nil
			}
		}
	}
	r, err := row.reader(tx)
	if err != nil {
		return 0, false, err
	}
	i, err := r.Search(0, func(x float64) bool { return x >= float64(step) })
	if err != nil || i == r.N() {
		return 0, false, err
	}
	c, err := r.Range(0, i, i+1)
	if err != nil || c[0].Lo[0] != step {
		return 0, false, err
	}
	if c[0].Count == 0 {
		return math.NaN(), true, nil
	}
	return c[0].First, true, nil
}

// upsertAll replaces all columns of a row with the same key.
func upsertAll(columns ...string) clause.OnConflict {
	c := clause.OnConflict{UpdateAll: true}
	for _, name := range columns {
		c.Columns = append(c.Columns, clause.Column{Name: name})
	}
	return c
}

// chunked yields list in pieces of at most n.
func chunked[T any](list []T, n int) func(yield func([]T) bool) {
	return func(yield func([]T) bool) {
		for len(list) > 0 {
			k := min(n, len(list))
			if !yield(list[:k]) {
				return
			}
			list = list[k:]
		}
	}
}
