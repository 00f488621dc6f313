package experiment_test

import (
	"testing"

	"agentrl/internal/experiment"
)

func TestUnprintable(t *testing.T) {
	t.Parallel()
	for r, want := range map[rune]bool{
		'a': false, ' ': false, 'é': false, '漢': false, 0x200d: false, '\n': true, 0x7f: true, 0x85: true, 0x202e: true,
		0x2066: true, 0x200f: true, 0x200b: true, 0x2028: true, 0xfeff: true,
	} {
		if got := experiment.Unprintable(r); got != want {
			t.Errorf("%U: %v", r, got)
		}
	}
}
