package queue

import (
	"fmt"
	"log/slog"
)

// asynqLog gives asynq's messages to slog. Its Fatal must not end the process.
type asynqLog struct{ l *slog.Logger }

func (a asynqLog) Debug(args ...any) { a.l.Debug("asynq", slog.String("text", fmt.Sprint(args...))) }
func (a asynqLog) Info(args ...any)  { a.l.Debug("asynq", slog.String("text", fmt.Sprint(args...))) }
func (a asynqLog) Warn(args ...any)  { a.l.Warn("asynq", slog.String("text", fmt.Sprint(args...))) }
func (a asynqLog) Error(args ...any) { a.l.Error("asynq", slog.String("text", fmt.Sprint(args...))) }
func (a asynqLog) Fatal(args ...any) { a.l.Error("asynq", slog.String("text", fmt.Sprint(args...))) }
