package chat

import (
	"agentrl/internal/policy"
	"agentrl/internal/trajectory"
)

// ToolCallGrammar returns the constraint that only lets well-formed calls of the bound tools through: one call, names
// from the set, strings free of special tokens.
func (c *Compact) ToolCallGrammar() policy.Constraint { return nil }

// Admissible returns the constraint that lets exactly the encodings of the given messages through.
func Admissible(f Format, msgs []trajectory.Message) (policy.Constraint, error) { return nil, nil }
