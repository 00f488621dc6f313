package store

import "gorm.io/gorm"

// counts reads the maintained numbers of rows per state of a table. Transactions that change both a run's and a job's
// state change the run's first: the counters are rows too, and all writers must take them in one order.
func counts[S ~string](db *gorm.DB, kind string) (map[S]int64, error) {
	var rows []struct {
		State string
		N     int64
	}
	if err := db.Table("counters").Where("kind = ? AND n <> 0", kind).Find(&rows).Error; err != nil {
		return nil, fail("count "+kind, err)
	}
	out := make(map[S]int64, len(rows))
	for _, r := range rows {
		out[S(r.State)] = r.N
	}
	return out, nil
}
