package store

import (
	"context"
	"database/sql"
	"math"

	"gorm.io/gorm"

	"agentrl/internal/metric"
)

// summaryRow is the maintained row per run and metric over the winning lineage.
type summaryRow struct {
	RunID     int64  `gorm:"primaryKey;autoIncrement:false"`
	Metric    string `gorm:"primaryKey"`
	N         int64
	Last      sql.NullFloat64
	Min       sql.NullFloat64
	Max       sql.NullFloat64
	FirstStep int64
	LastStep  int64
	NaNCount  int64 `gorm:"column:nan_count"`
}

func (summaryRow) TableName() string { return "run_metric" }

func summaryToRow(v metric.Summary) summaryRow {
	return summaryRow{RunID: v.RunID, Metric: v.Metric, N: v.N, Last: number(v.Last), Min: number(v.Min), Max: number(v.Max),
		FirstStep: v.FirstStep, LastStep: v.LastStep, NaNCount: v.NaN}
}

func (r summaryRow) summary() metric.Summary {
	return metric.Summary{RunID: r.RunID, Metric: r.Metric, N: r.N, Last: fromNumber(r.Last), Min: fromNumber(r.Min), Max: fromNumber(r.Max),
		FirstStep: r.FirstStep, LastStep: r.LastStep, NaN: r.NaNCount}
}

func saveSummaries(tx *gorm.DB, rows []summaryRow) error {
	if len(rows) == 0 {
		return nil
	}
	return tx.Clauses(upsertAll("run_id", "metric")).CreateInBatches(&rows, 200).Error
}

// Summaries lists a run's metrics by name. N counts all points of the winning lineage; Last, Min and Max are over those
// that are numbers, NaN if there are none.
func (s *Store) Summaries(ctx context.Context, runID int64) ([]metric.Summary, error) {
	var rows []summaryRow
	if err := s.read(ctx).Where("run_id = ?", runID).Order("metric").Find(&rows).Error; err != nil {
		return nil, fail("summaries", err)
	}
	out := make([]metric.Summary, len(rows))
	for i, r := range rows {
		out[i] = r.summary()
	}
	return out, nil
}

// rebuildSummaries computes a run's summaries anew from the stored levels, after a resume changed what counts.
func rebuildSummaries(tx *gorm.DB, runID int64) error {
	starts, err := loadStarts(tx, []int64{runID})
	if err != nil {
		return err
	}
	var names []string
	if err := tx.Model(&seriesRow{}).Where("run_id = ?", runID).Distinct().Order("metric").Pluck("metric", &names).Error; err != nil {
		return err
	}
	if err := tx.Where("run_id = ?", runID).Delete(&summaryRow{}).Error; err != nil {
		return err
	}
	var out []summaryRow
	for _, name := range names {
		var rows []seriesRow
		if err := tx.Where("run_id = ? AND metric = ?", runID, name).Order("attempt").Find(&rows).Error; err != nil {
			return err
		}
		pieces, err := lineage(tx, rows, starts[runID], name)
		if err != nil {
			return err
		}
		sum := metric.NewSummary(runID, name)
		for _, p := range pieces {
			cells, err := p.reader.Range(math.MaxInt32, p.from, p.to)
			if err != nil {
				return err
			}
			for _, c := range cells {
				sum.AddCell(c)
			}
		}
		if sum.N > 0 {
			out = append(out, summaryToRow(sum))
		}
	}
	return saveSummaries(tx, out)
}
