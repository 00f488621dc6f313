package alfworld

import (
	"encoding/json"
	"os"
	"path/filepath"

	"agentrl/internal/errs"
)

// maxSplitList bounds the bytes of a split list; the largest published one is far below.
const maxSplitList = 16 << 20

// ReadSplitList reads the list of a benchmark split, {task type: [path, ...]} (env-alfworld.md 2.2): the games in file
// order and how many of them do not exist below root. A game may also be stored compressed.
func ReadSplitList(path, root string) (games []string, missing int, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, errs.Wrap(errs.NotFound, err, "the split list %q cannot be opened", path)
	}
	if info.Size() > maxSplitList {
		return nil, 0, errs.New(errs.TooLarge, "the split list %q has %d bytes; allowed are %d", path, info.Size(), maxSplitList)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, errs.Wrap(errs.NotFound, err, "the split list %q cannot be read", path)
	}
	keys, values, err := pairs(string(b))
	if err != nil {
		return nil, 0, errs.Wrap(errs.Invalid, err, "the split list %q is not a JSON object of task types", path)
	}
	for i, k := range keys {
		var list []string
		if err := json.Unmarshal(values[i], &list); err != nil {
			return nil, 0, errs.Wrap(errs.Invalid, err, "the split list %q must hold lists of paths, but %q is none", path, short(k))
		}
		for _, rel := range list {
			if !filepath.IsLocal(filepath.FromSlash(rel)) {
				return nil, 0, bad("the split list %q names %q; paths must stay below the folder of games", path, short(rel))
			}
			full := filepath.Join(root, filepath.FromSlash(rel))
			switch {
			case exists(full):
				games = append(games, full)
			case exists(full + ".gz"):
				games = append(games, full+".gz")
			default:
				missing++
			}
		}
	}
	return games, missing, nil
}

func exists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}
