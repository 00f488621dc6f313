package alfworld

import (
	"math"
	"testing"
)

func TestBLEU(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		candidate, reference string
		want                 float64
	}{
		{"go to desk", "go to desk 1", 0.412521},
		{"put mug 1 on desk 1", "put mug 1 in/on desk 1", 0.293946},
		{"put mug 1 in desk 1", "move mug 1 to desk 1", 0.137429},
		{"take mug", "take mug 1 from desk 1", 0.029962},
		{"examine", "examine mug 1", 0.135335},
		{"open the drawer 2", "open drawer 2", 0.186165},
		{"go to desk 1", "go to desk 1", 1},
		{"dance", "go to desk 1", 0},
		{"", "go to desk 1", 0},
		{"go", "", 0},
	} {
		if got := bleu(c.reference, c.candidate); math.Abs(got-c.want) > 5e-7 {
			t.Errorf("bleu(%q, %q) = %.6f, want %.6f", c.candidate, c.reference, got, c.want)
		}
	}
}

func TestMatchBLEU(t *testing.T) {
	t.Parallel()
	commands := []string{"examine mug 1", "go to desk 1", "go to desk 2", "look", "put mug 1 in/on desk 1"}
	for in, want := range map[string]string{
		"  Go To Desk 2 \nbecause I can": "go to desk 2",
		"go to desk":                     "go to desk 1", // the first of equal ones
		"put mug 1 on desk 1":            "put mug 1 in/on desk 1",
		"LOOK":                           "look",
		"dance":                          "dance",
		"":                               "",
	} {
		if got := matchBLEU(in, commands); got != want {
			t.Errorf("matchBLEU(%q) = %q, want %q", in, got, want)
		}
	}
}
