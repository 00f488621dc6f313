package runfile

import "agentrl/internal/experiment"

func parse(data []byte, tasks []string) (experiment.Config, []Problem) { return experiment.Defaults(), nil }
func format(c experiment.Config) []byte { return nil }
func preset(name string) ([]byte, bool) { return nil, false }
func presets() []PresetInfo { return nil }
