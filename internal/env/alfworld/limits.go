package alfworld

import "agentrl/internal/errs"

// Bounds on what a game file may ask of us. The published games stay far below all of them.
const (
	maxFileBytes   = 8 << 20 // of a game file, after decompression
	maxTextBytes   = 2 << 20 // of one text inside it
	maxDepth       = 64      // of nested parentheses, braces or symbols
	maxNodes       = 400_000 // of one PDDL text
	maxEntities    = 20_000
	maxPredicates  = 256
	maxArity       = 3
	maxParams      = 8
	maxSlots       = 32 // variables of one action or goal
	maxSchemas     = 128
	maxOperators   = 5_000 // instances of one action in one state
	maxWalkthrough = 1_000
	maxOutput      = 64 << 10  // bytes of one observation
	maxWork        = 2_000_000 // facts looked at for one state
)

// bad is an Invalid error about a game file.
func bad(format string, args ...any) error { return errs.New(errs.Invalid, format, args...) }
