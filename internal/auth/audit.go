package auth

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
)

// Record writes one audit entry; before and after are encoded as JSON, nil stays empty. Hand in no secrets.
func (s *Service) Record(ctx context.Context, actor User, o Origin, action, object string, before, after any) error {
	b, err := auditJSON(before)
	if err != nil {
		return err
	}
	a, err := auditJSON(after)
	if err != nil {
		return err
	}
	return s.st.Audit(ctx, AuditEntry{At: s.now(), UserID: actor.ID, Email: actor.Email, Addr: o.Addr, Action: action, Object: object, Before: b, After: a})
}

// audit records what has been done already; that it could not be recorded is an error for the log.
func (s *Service) audit(ctx context.Context, actor User, o Origin, action, object string, before, after any) {
	if err := s.Record(context.WithoutCancel(ctx), actor, o, action, object, before, after); err != nil {
		s.log.Error("an audit entry could not be written", slog.String("action", action), slog.String("object", object),
			slog.Int64("user", actor.ID), slog.Any("error", err))
	}
}

func auditJSON(v any) (string, error) {
	if v == nil {
		return "", nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode audit entry: %w", err)
	}
	return string(b), nil
}

// auditUser is what the record shows of a user: never the password hash.
func auditUser(u User) any {
	return map[string]any{"email": u.Email, "name": u.Name, "role": u.Role, "disabled": u.Disabled}
}
