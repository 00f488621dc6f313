package alfworld

import (
	"hash/fnv"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"agentrl/internal/errs"
	"agentrl/internal/experiment"
)

// maxCachedGames bounds the parsed games that a folder keeps.
const maxCachedGames = 256

// folder serves game files. Safe for concurrent use.
type folder struct {
	lib     *Library
	wording string
	paths   []string
	missing int // files that a split list names but that do not exist

	mu     sync.Mutex
	parsed map[int64]*Game
}

// splitNames are the folder names that put a file into a split: train, valid and test.
func splitNames(split int) []string {
	return [3][]string{{"train"}, {"valid", "valid_seen", "validation", "val", "dev"}, {"test", "valid_unseen", "valid_train_unseen", "test_seen", "test_unseen"}}[split]
}

// openFolder lists the games of a split below conf.Data: by folder names where there are any, else nine in ten files,
// chosen by the hash of their path, are for training and the rest is shared by validation and test. conf.Data may also
// be a split list, whose files lie below its own folder.
func openFolder(lib *Library, conf experiment.ALFWorld, split int) (games, error) {
	f := &folder{lib: lib, wording: conf.Wording, parsed: map[int64]*Game{}}
	root := conf.Data
	var all []string
	var err error
	if strings.HasSuffix(conf.Data, ".json") {
		root = filepath.Dir(conf.Data)
		all, f.missing, err = ReadSplitList(conf.Data, root)
	} else {
		all, err = LoadDir(conf.Data)
	}
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errs.Field("env.alfworld.data", "there is no .tw-pddl or .tw-pddl.gz file below %q", conf.Data)
	}
	named := false
	for _, p := range all {
		s := splitOf(root, p)
		named = named || s >= 0
		if s == split {
			f.paths = append(f.paths, p)
		}
	}
	if !named {
		for _, p := range all {
			if held := heldOut(root, p); held == (split != 0) {
				f.paths = append(f.paths, p)
			}
		}
	}
	if len(f.paths) == 0 {
		return nil, errs.New(errs.NotFound, "%q has no games for %s", conf.Data, taskNames()[split])
	}
	return f, nil
}

// splitOf returns the split that a folder name in the path below dir says, or -1.
func splitOf(dir, path string) int {
	for _, part := range strings.Split(filepath.ToSlash(filepath.Dir(below(dir, path))), "/") {
		for s := range 3 {
			if slices.Contains(splitNames(s), part) {
				return s
			}
		}
	}
	return -1
}

func below(dir, path string) string {
	if r, err := filepath.Rel(dir, path); err == nil {
		return r
	}
	return path
}

// heldOut picks one file in ten.
func heldOut(dir, path string) bool {
	h := fnv.New32a()
	h.Write([]byte(filepath.ToSlash(below(dir, path))))
	return mix(uint64(h.Sum32()), "")%10 == 0
}

func (f *folder) size() int64 { return int64(len(f.paths)) }

func (f *folder) game(index int64) (*Game, error) {
	f.mu.Lock()
	g := f.parsed[index]
	f.mu.Unlock()
	if g != nil {
		return g, nil
	}
	file, err := ReadFile(f.paths[index])
	if err != nil {
		return nil, err
	}
	if g, err = f.lib.Load(file, f.wording); err != nil {
		return nil, errs.Wrap(errs.CodeOf(err), err, "the game file %q cannot be played", f.paths[index])
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.parsed) >= maxCachedGames {
		for k := range f.parsed {
			delete(f.parsed, k) // any one: games are drawn at random
			break
		}
	}
	f.parsed[index] = g
	return g, nil
}
