package native

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"agentrl/internal/engine"
	"agentrl/internal/errs"
	"agentrl/internal/nn"
)

// The files of a checkpoint (compute.md 10); every kept version has one of its own, named after its label.
const (
	modelFile     = "model.safetensors"
	optimizerFile = "optimizer.safetensors"
	referenceFile = "reference.safetensors"
	configName    = "config.json"
	tokenizerName = "tokenizer.json"
	versionKey    = "version"
)

var label = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

func checkLabel(name string) error {
	if !label.MatchString(name) || slices.Contains([]string{"model", "optimizer", "reference", "adapter_model"}, name) {
		return errs.New(errs.Invalid, "%q cannot name a kept version; allowed are up to 32 small letters, digits, - and _, except model, optimizer and reference", name)
	}
	return nil
}

// Save writes model, optimizer, the kept versions, the reference if there is one, config.json and tokenizer.json, each
// flushed to the disk. dir must exist and be empty.
func (e *Engine) Save(ctx context.Context, dir string, keep map[string]engine.Version) error {
	e.train.Lock()
	defer e.train.Unlock()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return errs.Wrap(errs.Invalid, err, "a checkpoint needs an existing, empty directory")
	}
	type part struct {
		name  string
		write func(path string) error
	}
	parts := []part{
		{modelFile, func(p string) error { return e.model.Save(p, map[string]string{"format": "pt"}) }},
		{optimizerFile, e.trainer.SaveOptimizer},
		{configName, func(p string) error {
			b, err := configJSON(e.model.Config())
			if err != nil {
				return err
			}
			return writeFile(p, b)
		}},
		{tokenizerName, func(p string) error {
			b, err := e.tokenizerJSON()
			if err != nil {
				return err
			}
			return writeFile(p, b)
		}},
	}
	if e.ref != nil {
		parts = append(parts, part{referenceFile, func(p string) error { return e.ref.model.Save(p, map[string]string{"format": "pt"}) }})
	}
	for _, name := range slices.Sorted(maps.Keys(keep)) {
		if err := checkLabel(name); err != nil {
			return err
		}
		v, err := e.published(keep[name])
		if err != nil {
			return err
		}
		meta := map[string]string{"format": "pt", versionKey: strconv.FormatInt(int64(v.number), 10)}
		parts = append(parts, part{name + ".safetensors", func(p string) error { return v.model.Save(p, meta) }})
	}
	for _, p := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.write(filepath.Join(dir, p.name)); err != nil {
			return errs.Wrap(errs.Unavailable, err, "the checkpoint file %s cannot be written", p.name)
		}
	}
	return syncDir(dir)
}

func (e *Engine) published(v engine.Version) (*version, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.find(v)
}

func (e *Engine) tokenizerJSON() ([]byte, error) {
	var b bytes.Buffer
	err := e.tok.Write(&b)
	return b.Bytes(), err
}

func writeFile(path string, b []byte) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes the names of the files durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Load restores what Save wrote: everything is read and checked before anything changes. All versions published so far
// are released, the kept ones are published again under their numbers and returned by their labels.
func (e *Engine) Load(ctx context.Context, dir string) (map[string]engine.Version, error) {
	e.train.Lock()
	defer e.train.Unlock()
	c, err := readConfig(dir)
	if err != nil {
		return nil, err
	}
	want := e.model.Config()
	c.Name, c.Context = want.Name, want.Context
	if c != want {
		return nil, errs.New(errs.Conflict, "the checkpoint holds another architecture than the engine: %+v instead of %+v", c, want)
	}
	if err := e.sameTokenizer(filepath.Join(dir, tokenizerName)); err != nil {
		return nil, err
	}
	model, err := readModel(dir, want)
	if err != nil {
		return nil, err
	}
	var ref *reference
	if m, _, err := nn.LoadModel(want, filepath.Join(dir, referenceFile)); err == nil {
		ref = &reference{m, m.Pack()}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	kept, models, err := readKept(dir, want)
	if err != nil {
		return nil, err
	}
	if len(models) > e.opt.Versions {
		return nil, errs.New(errs.Conflict, "the checkpoint keeps %d versions, the engine holds at most %d", len(models), e.opt.Versions)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := e.trainer.LoadOptimizer(filepath.Join(dir, optimizerFile)); err != nil {
		return nil, err
	}
	e.trainer.ZeroGrad()
	if err := e.model.CopyFrom(model); err != nil {
		return nil, err
	}
	e.ref = ref
	e.releaseAll()
	for _, v := range slices.Sorted(maps.Keys(models)) {
		if _, err := e.publish(v, models[v]); err != nil {
			return nil, err
		}
	}
	return kept, nil
}

func (e *Engine) releaseAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for n, v := range e.versions {
		delete(e.versions, n)
		e.service.retire(v)
	}
}

func (e *Engine) sameTokenizer(path string) error {
	want, err := e.tokenizerJSON()
	if err != nil {
		return err
	}
	got, err := os.ReadFile(path)
	if err != nil {
		return errs.Wrap(errs.NotFound, err, "the checkpoint has no readable tokenizer.json")
	}
	if !bytes.Equal(got, want) {
		return errs.New(errs.Conflict, "the checkpoint was made with another tokenizer; open the engine with the checkpoint's own")
	}
	return nil
}

// readKept reads the weight sets of the kept versions.
func readKept(dir string, c nn.Config) (map[string]engine.Version, map[engine.Version]*nn.Model, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.safetensors"))
	if err != nil {
		return nil, nil, err
	}
	kept, models := map[string]engine.Version{}, map[engine.Version]*nn.Model{}
	for _, path := range files {
		name := strings.TrimSuffix(filepath.Base(path), ".safetensors")
		if checkLabel(name) != nil {
			continue
		}
		m, meta, err := nn.LoadModel(c, path)
		if err != nil {
			return nil, nil, err
		}
		n, err := strconv.ParseInt(meta[versionKey], 10, 64)
		if err != nil || n < 0 {
			return nil, nil, errs.New(errs.Invalid, "%s.safetensors does not say which version it is", name)
		}
		kept[name], models[engine.Version(n)] = engine.Version(n), m
	}
	return kept, models, nil
}
