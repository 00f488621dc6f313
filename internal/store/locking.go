package store

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// forUpdate locks the rows that the query reads until the transaction ends. SQLite has a single writer and needs none.
func forUpdate(tx *gorm.DB) *gorm.DB { return tx.Clauses(clause.Locking{Strength: "UPDATE"}) }

// lockName serialises transactions that share a name, where there is no row yet to lock.
func (s *Store) lockName(tx *gorm.DB, name string) error {
	if !s.pg {
		return nil
	}
	return tx.Exec("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", name).Error
}
