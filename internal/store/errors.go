package store

import (
	"errors"
	"fmt"

	"gorm.io/gorm"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

// fail names the operation in errors that are not meant for users and passes on those that are.
func fail(op string, err error) error {
	var known *errs.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.Is(err, experiment.ErrFenced), errors.Is(err, experiment.ErrLeased):
		return err
	}
	return fmt.Errorf("store: %s: %w", op, err)
}

// missing turns "no such row" into NotFound, with what was looked for.
func missing(op string, err error, what string, args ...any) error {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return errs.New(errs.NotFound, "there is no "+what, args...)
	}
	return fail(op, err)
}

// taken turns a violated unique key into Conflict, with what is taken.
func taken(op string, err error, what string, args ...any) error {
	if errors.Is(err, gorm.ErrDuplicatedKey) {
		return errs.New(errs.Conflict, what, args...)
	}
	return fail(op, err)
}

// need returns NotFound when a statement touched no row.
func need(res *gorm.DB, what string, args ...any) error {
	if res.Error != nil {
		return res.Error
	}
	if res.RowsAffected == 0 {
		return errs.New(errs.NotFound, "there is no "+what, args...)
	}
	return nil
}
