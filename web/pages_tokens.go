package web

import (
	"context"
	"log/slog"
	"path/filepath"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/tokenizer"
	"agentrl/templates"
)

// TokenTexts turns token ids of a run into the texts they stand for, one per id. NotFound: the run has no vocabulary yet.
type TokenTexts interface {
	TokenTexts(ctx context.Context, runID int64, ids []int32) ([]string, error)
}

// CheckpointTexts reads a run's vocabulary from its latest checkpoint below the data directory. A run keeps one
// vocabulary from its first checkpoint on.
type CheckpointTexts struct {
	Data  string
	Store interface {
		Checkpoints(ctx context.Context, runID int64) ([]experiment.CheckpointInfo, error)
	}
}

// TokenTexts implements TokenTexts. Bytes that are not characters of their own come as visible marks.
func (c CheckpointTexts) TokenTexts(ctx context.Context, runID int64, ids []int32) ([]string, error) {
	list, err := c.Store.Checkpoints(ctx, runID)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errs.New(errs.NotFound, "the run has no checkpoint yet")
	}
	last := list[0]
	for _, k := range list {
		if k.CreatedAt.After(last.CreatedAt) {
			last = k
		}
	}
	if !filepath.IsLocal(last.Dir) {
		return nil, errs.New(errs.Internal, "the checkpoint's folder %q is not below the data directory", last.Dir)
	}
	tok, err := tokenizer.ReadFile(filepath.Join(c.Data, last.Dir, "tokenizer.json"))
	if err != nil {
		return nil, err
	}
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = templates.Visible(tok.Decode([]int32{id}))
	}
	return out, nil
}

// tokenTexts is one text per id, or nothing when the vocabulary of the run is not at hand: the page then shows ids.
func (s *Server) tokenTexts(ctx context.Context, runID int64, ids []int32) []string {
	if s.o.Texts == nil {
		return nil
	}
	texts, err := s.o.Texts.TokenTexts(ctx, runID, ids)
	if err != nil {
		if errs.CodeOf(err) != errs.NotFound {
			s.log.LogAttrs(ctx, slog.LevelWarn, "token texts are not at hand", slog.Int64("run", runID), slog.Any("err", err))
		}
		return nil
	}
	return texts
}
