package templates

import "strconv"

func newRunTitle(v NewRunView) string {
	if v.Fork != "" {
		return "Fork of " + v.Fork
	}
	return "New run"
}

func problemCount(p []DraftProblem) string {
	switch len(p) {
	case 0:
		return "the file is valid"
	case 1:
		return "1 problem"
	}
	return strconv.Itoa(len(p)) + " problems"
}
