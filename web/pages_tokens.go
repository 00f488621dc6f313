package web

import (
	"context"
	"log/slog"
)

// TokenTexts turns token ids of a run into the texts they stand for.
type TokenTexts interface {
	TokenTexts(ctx context.Context, runID int64, ids []int32) ([]string, error)
}

// tokenTexts is one text per id, or nothing when the vocabulary of the run is not at hand: the page then shows ids.
func (s *Server) tokenTexts(ctx context.Context, runID int64, ids []int32) []string {
	src, ok := s.store.(TokenTexts)
	if !ok {
		return nil
	}
	texts, err := src.TokenTexts(ctx, runID, ids)
	if err != nil {
		s.log.LogAttrs(ctx, slog.LevelWarn, "token texts are not at hand", slog.Int64("run", runID), slog.Any("err", err))
		return nil
	}
	return texts
}
