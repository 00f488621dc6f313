package web

import (
	"strconv"

	"agentrl/internal/errs"
	"agentrl/internal/runfile"
)

// gamesKey is where a run file names its folder of real games.
const gamesKey = "env.alfworld.data"

// preset returns a preset's run file. One that needs a folder of real games names the server's, if it has one.
func (s *Server) preset(name string) (draft, error) {
	text, ok := runfile.Preset(name)
	if !ok {
		return draft{}, errs.Field("preset", "there is no preset %q", clip(name, 40))
	}
	d := newDraft(string(text))
	if s.o.AlfworldData == "" {
		return d, nil
	}
	for _, p := range runfile.Presets() {
		if p.Name == name && p.Needs == gamesKey {
			return d.set(gamesKey, strconv.Quote(s.o.AlfworldData))
		}
	}
	return d, nil
}
