package web

import (
	"testing"

	"agentrl/internal/runfile"
)

// TestPresetsNameTheServersGames holds that a preset which needs a folder of games runs as it is where there is one.
func TestPresetsNameTheServersGames(t *testing.T) {
	t.Parallel()
	s := &Server{o: Options{AlfworldData: `/srv/games of "ours"`}}
	for _, p := range runfile.Presets() {
		d, err := s.preset(p.Name)
		if err != nil {
			t.Fatal(err)
		}
		conf, problems := runfile.Parse([]byte(d.text), nil)
		if len(problems) > 0 {
			t.Fatalf("%s: %v", p.Name, problems)
		}
		want := ""
		if p.Needs == gamesKey {
			want = s.o.AlfworldData
		}
		if conf.Env.ALFWorld.Data != want {
			t.Errorf("%s plays %q, want %q", p.Name, conf.Env.ALFWorld.Data, want)
		}
	}
	if _, err := s.preset("nope"); err == nil {
		t.Error("an unknown preset is accepted")
	}
}
