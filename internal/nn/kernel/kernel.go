// Package kernel holds the arithmetic of the CPU model: a packed single-precision matrix product and element-wise
// routines, in AVX2/FMA assembly where the processor has it and in plain Go everywhere (compute.md 4).
//
// Every element of a product is one sum over k in order, in blocks of KC, so its bits depend on neither the number of
// rows computed with it nor the tile it falls into. Different paths may differ by rounding.
package kernel

import (
	"os"

	"agentrl/internal/errs"
)

// EnvVar names the environment variable that forces a path.
const EnvVar = "AGENTRL_KERNEL"

// The paths.
const (
	Generic = "generic"
	AVX2    = "avx2"
)

// Kernel is a chosen path; the zero value is the generic one.
type Kernel struct{ asm bool }

// New returns the named path; "" means the best one this processor has.
func New(name string) (Kernel, error) {
	switch name {
	case "":
		return Kernel{asm: haveAsm()}, nil
	case Generic:
		return Kernel{}, nil
	case AVX2:
		if !haveAsm() {
			return Kernel{}, errs.New(errs.Invalid, "this processor or build has no AVX2 and FMA; use kernel %q", Generic)
		}
		return Kernel{asm: true}, nil
	}
	return Kernel{}, errs.New(errs.Invalid, "unknown kernel %q; allowed: %q, %q, or nothing for the best", name, AVX2, Generic)
}

// FromEnv returns the path AGENTRL_KERNEL asks for, or the best one.
func FromEnv() (Kernel, error) { return New(os.Getenv(EnvVar)) }

// Name is "avx2" or "generic".
func (k Kernel) Name() string {
	if k.asm {
		return AVX2
	}
	return Generic
}
