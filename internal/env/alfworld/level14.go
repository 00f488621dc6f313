package alfworld

import "agentrl/internal/errs"

func (h *house) furnish(level int, kind string, unseen bool) error {
	return errs.New(errs.Unavailable, "level %d is not ready", level)
}
