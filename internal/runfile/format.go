package runfile

import (
	"embed"

	"github.com/goccy/go-yaml"

	"agentrl/internal/experiment"
)

func format(c experiment.Config) []byte {
	if c.Tasks == nil {
		c.Tasks = []experiment.TaskMix{}
	}
	if c.Eval.Tasks == nil {
		c.Eval.Tasks = []string{}
	}
	out, err := yaml.MarshalWithOptions(c, yaml.IndentSequence(true))
	if err != nil {
		// Only types that YAML cannot express fail, and the configuration has none.
		return nil
	}
	return out
}

//go:embed presets/*.yaml
var files embed.FS

func preset(name string) ([]byte, bool) {
	for _, p := range presets() {
		if p.Name == name {
			data, err := files.ReadFile("presets/" + name + ".yaml")
			return data, err == nil
		}
	}
	return nil, false
}

func presets() []PresetInfo {
	return []PresetInfo{
		{Name: "quickstart", Summary: "a tiny model learns generated household games in about twelve minutes on two cores"},
		{Name: "quickstart-single", Summary: "the quickstart without cross-policy sampling, for comparison"},
		{Name: "alfworld-real", Summary: "a small model on a folder of real ALFWorld games", Needs: "env.alfworld.data"},
	}
}
