package train

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agentrl/internal/experiment"
)

// The files of a checkpoint that are written here; the engine writes the others (compute.md 10).
const (
	stateFile     = "state.json"
	tokenizerFile = "tokenizer.json"
	latestFile    = "latest"
	tempPrefix    = ".tmp-"
)

// maxStateFile bounds what is read as state.json.
const maxStateFile = 64 << 20

// checkpoints is the folder of a run's checkpoints.
type checkpoints struct {
	data string // data directory
	rel  string // folder below it
	hook func(point string)
}

func newCheckpoints(data string, runID int64, hook func(point string)) *checkpoints {
	return &checkpoints{hook: hook, data: data, rel: filepath.Join("runs", fmt.Sprint(runID), "checkpoints")}
}

func (c *checkpoints) root() string { return filepath.Join(c.data, c.rel) }

// candidate is a checkpoint on disk, ordered by attempt first: a later attempt knows what earlier ones left behind, and
// a worker that lost its lease may have written after it was replaced.
type candidate struct {
	name                  string
	attempt, warmup, step int64
}

func checkpointName(warmup, step int64, attempt int) string {
	return fmt.Sprintf("w%07d-s%07d-a%d", warmup, step, attempt)
}

// list returns the checkpoints, newest first, and removes what an interrupted save left behind.
func (c *checkpoints) list() ([]candidate, error) {
	entries, err := os.ReadDir(c.root())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []candidate
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			if err := os.RemoveAll(filepath.Join(c.root(), e.Name())); err != nil {
				return nil, err
			}
			continue
		}
		k := candidate{name: e.Name()}
		if n, _ := fmt.Sscanf(e.Name(), "w%d-s%d-a%d", &k.warmup, &k.step, &k.attempt); n == 3 && e.IsDir() {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b candidate) int {
		for _, d := range []int64{b.attempt - a.attempt, b.warmup - a.warmup, b.step - a.step} {
			if d != 0 {
				return int(d)
			}
		}
		return 0
	})
	return out, nil
}

// read loads state.json of a checkpoint and checks every file against its hash.
func (c *checkpoints) read(name string) (state, error) {
	dir := filepath.Join(c.root(), name)
	f, err := os.Open(filepath.Join(dir, stateFile))
	if err != nil {
		return state{}, err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxStateFile))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return state{}, err
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return state{}, fmt.Errorf("%s: %w", stateFile, err)
	}
	if s.Format != stateFormat {
		return state{}, fmt.Errorf("%s has format %d, this version reads %d", stateFile, s.Format, stateFormat)
	}
	if len(s.Files) == 0 {
		return state{}, fmt.Errorf("%s names no files", stateFile)
	}
	for file, want := range s.Files {
		if file != filepath.Base(file) {
			return state{}, fmt.Errorf("%s names the file %q outside the checkpoint", stateFile, file)
		}
		got, err := hashFile(filepath.Join(dir, file))
		if err != nil {
			return state{}, err
		}
		if got != want {
			return state{}, fmt.Errorf("%s is damaged: its SHA-256 is not the one that was saved", file)
		}
	}
	return s, nil
}

// write saves a checkpoint under a temporary name, makes it durable and only then gives it its name and moves the
// latest marker. fill writes the engine's and the tokenizer's files.
func (c *checkpoints) write(ctx context.Context, s state, fill func(dir string) error) (experiment.CheckpointInfo, error) {
	name := checkpointName(s.WarmupStep, s.Step, s.Attempt)
	temp, final := filepath.Join(c.root(), tempPrefix+name), filepath.Join(c.root(), name)
	info := experiment.CheckpointInfo{RunID: s.RunID, Attempt: s.Attempt, Step: s.Step, WarmupStep: s.WarmupStep, Dir: filepath.Join(c.rel, name)}
	if err := os.RemoveAll(temp); err != nil {
		return info, err
	}
	if err := os.MkdirAll(temp, 0o755); err != nil {
		return info, err
	}
	if err := c.fill(ctx, temp, &s, fill, &info.Bytes); err != nil {
		return info, errors.Join(err, os.RemoveAll(temp))
	}
	// The same step may be saved again after an evaluation was added to it.
	if err := os.RemoveAll(final); err != nil {
		return info, err
	}
	c.hook("checkpoint-rename")
	if err := os.Rename(temp, final); err != nil {
		return info, err
	}
	if err := syncPath(c.root()); err != nil {
		return info, err
	}
	c.hook("checkpoint-done")
	return info, c.mark(name)
}

func (c *checkpoints) fill(ctx context.Context, dir string, s *state, fill func(string) error, total *int64) error {
	if err := fill(dir); err != nil {
		return err
	}
	c.hook("checkpoint-write")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	s.Files = map[string]string{}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := filepath.Join(dir, e.Name())
		if s.Files[e.Name()], err = hashFile(path); err != nil {
			return err
		}
		if err := syncPath(path); err != nil {
			return err
		}
		if fi, err := e.Info(); err == nil {
			*total += fi.Size()
		}
	}
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	*total += int64(len(data))
	if err := writeDurable(filepath.Join(dir, stateFile), data); err != nil {
		return err
	}
	return syncPath(dir)
}

// mark replaces the latest marker atomically.
func (c *checkpoints) mark(name string) error {
	temp := filepath.Join(c.root(), tempPrefix+latestFile)
	if err := writeDurable(temp, []byte(name+"\n")); err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(c.root(), latestFile)); err != nil {
		return err
	}
	return syncPath(c.root())
}

func (c *checkpoints) remove(name string) error { return os.RemoveAll(filepath.Join(c.root(), name)) }

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func writeDurable(path string, data []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncPath makes a file or the entries of a folder durable.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
