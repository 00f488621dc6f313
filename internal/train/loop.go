package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"agentrl/internal/chat"
	"agentrl/internal/engine"
	"agentrl/internal/env"
	"agentrl/internal/errs"
	"agentrl/internal/experiment"
	"agentrl/internal/policy"
	"agentrl/internal/rollout"
	"agentrl/internal/tokenizer"
	"agentrl/internal/trajectory"
)

// loop is one attempt.
type loop struct {
	d     Deps
	run   experiment.Run
	lease experiment.Lease
	cfg   experiment.Config
	began time.Time

	st      state
	ckpt    *checkpoints
	specs   map[string]env.Spec
	mix     []rollout.MixTask
	tok     *tokenizer.Tokenizer
	formats map[string]chat.Format
	eng     engine.Engine
	ref     engine.Referencer // frozen reference for the KL penalty; nil without
	caps    engine.Capabilities
	pool    *policy.Pool
	weights *rollout.Weights
	pipe    *rollout.Pipeline
	hooks   *feed
	eval    *evaluation // under way beside training; nil: none

	stalenessMax int64  // of the last update, tokens of the current policy
	saved        string // name of the last checkpoint
	savedStep    int64
	savedWarmup  int64
	retryWait    time.Duration
	rlBegan      time.Time
	rlRunning    bool
}

// versionsResident is how many published versions the engine is asked to hold: the current and the stale one, one that
// is evaluated, and those that running turns still use.
const versionsResident = 6

func (l *loop) execute(ctx context.Context) error {
	l.st = newState(l.run.ID, l.cfg.Seed)
	l.retryWait = 100 * time.Millisecond
	l.ckpt = newCheckpoints(l.d.DataDir, l.run.ID, l.d.Hook)
	l.hooks = newFeed(l)
	if err := l.tasks(ctx); err != nil {
		return err
	}
	if err := l.open(ctx); err != nil {
		return err
	}
	l.st.Attempt = l.lease.Attempt
	if err := l.d.Store.SetStart(ctx, l.lease, l.st.WarmupStep, l.st.startStep(), l.caps.Kernel); err != nil {
		return wrapStore(err)
	}
	l.st.Kernel = l.caps.Kernel
	for _, phase := range []func(context.Context) error{l.warmup, l.prepare, l.train, l.finish} {
		err := phase(ctx)
		if errors.Is(err, errStop) {
			return l.stop(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func wrapStore(err error) error {
	if errors.Is(err, experiment.ErrFenced) {
		return err
	}
	return &storeError{err}
}

// tasks reads what the gateway offers and checks the configuration against it.
func (l *loop) tasks(ctx context.Context) error {
	specs, err := l.d.Gateway.Specs(ctx)
	if err != nil {
		return errs.Wrap(errs.Unavailable, err, "the environments cannot be reached")
	}
	l.specs = map[string]env.Spec{}
	var names []string
	for _, s := range specs {
		l.specs[s.Task] = s
		names = append(names, s.Task)
	}
	if problems := experiment.Validate(l.cfg, names); len(problems) > 0 {
		return problems[0]
	}
	for _, t := range l.cfg.Tasks {
		l.mix = append(l.mix, rollout.MixTask{Task: t.Task, Weight: t.Weight, Samples: l.specs[t.Task].Samples})
	}
	l.pool, err = policy.NewPool(l.cfg.Policy.Pool, policy.Hash(l.cfg.Seed, purposePool))
	return err
}

const (
	purposePool    = 0x9001
	purposeMix     = 0x31c5
	purposeSample  = 0x5a3e
	purposeWeights = 0x3e16
	purposeJitter  = 0x717e
)

// open finds the newest valid checkpoint, or makes a tokenizer, and builds the engine.
func (l *loop) open(ctx context.Context) error {
	list, err := l.ckpt.list()
	if err != nil {
		return &diskError{err}
	}
	for _, c := range list {
		s, err := l.ckpt.read(c.name)
		if err == nil {
			err = l.restore(ctx, c.name, s)
		}
		if err == nil {
			return l.event(ctx, "info", "resumed", "resumed from the checkpoint at warm-start step %d, step %d", s.WarmupStep, s.Step)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		l.d.Log.Warn("a checkpoint is unusable", "checkpoint", c.name, "error", err)
		if err := l.event(ctx, "error", "checkpoint", "the checkpoint %s is unusable: %v", c.name, err); err != nil {
			return err
		}
		l.shut()
	}
	if len(list) > 0 {
		return errs.New(errs.Unavailable, "none of the %d checkpoints below %s can be read; put an intact copy there and resume, or fork the run to begin again", len(list), l.ckpt.rel)
	}
	l.st = newState(l.run.ID, l.cfg.Seed)
	if !strings.ContainsAny(l.cfg.Policy.Base, `/\`) {
		if l.tok, err = l.trainTokenizer(ctx); err != nil {
			return err
		}
	}
	if err := l.build(ctx); err != nil {
		return err
	}
	return l.bind()
}

func (l *loop) build(ctx context.Context) error {
	eng, err := l.d.NewEngine(ctx, EngineSpec{
		Base: l.cfg.Policy.Base, Tokenizer: l.tok, MaxContext: l.cfg.Sampling.MaxTotalTokens,
		Concurrency: l.cfg.Pipeline.Concurrency + evalConcurrency, Versions: versionsResident,
		Seed: policy.Hash(l.cfg.Seed, purposeWeights), Conf: l.cfg.Engine,
	})
	if err != nil {
		return err
	}
	l.eng = eng // only now: a failed constructor may hand back a typed nil
	l.caps = l.eng.Capabilities()
	if own, ok := l.eng.(interface{ Tokenizer() *tokenizer.Tokenizer }); ok && l.tok == nil {
		l.tok = own.Tokenizer()
	}
	if l.tok == nil {
		return errs.Field("policy.base", "the model in %q has no tokenizer.json", l.cfg.Policy.Base)
	}
	l.weights = rollout.NewWeights(l.eng, l.cfg.Pipeline.WeightSync)
	return nil
}

// bind makes the chat format of every task.
func (l *loop) bind() error {
	base, err := chat.New(chat.CompactName, l.tok)
	if err != nil {
		return err
	}
	l.formats = map[string]chat.Format{}
	for task, s := range l.specs {
		if l.formats[task], err = base.With(s.Tools); err != nil {
			return err
		}
	}
	return nil
}

// restore loads a checkpoint whose files are intact.
func (l *loop) restore(ctx context.Context, name string, s state) error {
	if s.RunID != l.run.ID {
		return fmt.Errorf("it is of run %d", s.RunID)
	}
	dir := filepath.Join(l.ckpt.root(), name)
	var err error
	if l.tok, err = tokenizer.ReadFile(filepath.Join(dir, tokenizerFile)); err != nil {
		return err
	}
	if err := l.build(ctx); err != nil {
		return err
	}
	kept, err := l.eng.Load(ctx, dir)
	if err != nil {
		return err
	}
	l.st, l.saved, l.savedStep, l.savedWarmup = s, name, s.Step, s.WarmupStep
	for name, v := range kept {
		l.weights.Track(v)
		l.weights.Set(map[string]engine.Version{name: v})
	}
	return l.bind()
}

// trainTokenizer learns a vocabulary from the first demonstrations of the tasks, or without demonstrations from the
// openings of the first samples.
func (l *loop) trainTokenizer(ctx context.Context) (*tokenizer.Tokenizer, error) {
	list, err := l.firstDemos(ctx, tokenizerDemos)
	if err != nil {
		return nil, err
	}
	var tools []trajectory.Tool
	for _, t := range l.mix {
		for _, tool := range l.specs[t.Task].Tools {
			if !slices.ContainsFunc(tools, func(o trajectory.Tool) bool { return o.Name == tool.Name }) {
				tools = append(tools, tool)
			}
		}
	}
	vocab := l.cfg.Engine.VocabSize
	if vocab == 0 {
		vocab = defaultVocab
	}
	var texts iter.Seq[[]trajectory.Message] = func(yield func([]trajectory.Message) bool) {
		for _, d := range list {
			if !yield(d.messages()) {
				return
			}
		}
	}
	return chat.TrainTokenizer(texts, tools, vocab)
}

// defaultVocab is enough for one token per common word of the built-in tasks.
const defaultVocab = 1024

// tokenizerDemos is how many demonstrations the tokenizer and the size of a warm-start batch are taken from.
const tokenizerDemos = 256

// firstDemos plays the first demonstrations, several at a time.
func (l *loop) firstDemos(parent context.Context, n int) ([]*demonstration, error) {
	t := l.teacher()
	each := l.cfg.Warmup.Demonstrations
	if each == 0 {
		each = n
	}
	n = min(n, each)
	out := make([]*demonstration, n)
	group, ctx := errgroup.WithContext(parent)
	group.SetLimit(l.cfg.Pipeline.Concurrency)
	for i, d := range demoDraws(l.mix, l.cfg.Seed, each, 0) {
		if i >= int64(n) {
			break
		}
		group.Go(func() (err error) {
			if out[i], err = l.playDemo(ctx, t, i, d); err != nil && ctx.Err() == nil {
				err = errs.Wrap(errs.Unavailable, err, "a demonstration of %s could not be played: %v", d.Task, err)
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		if parent.Err() != nil {
			return nil, parent.Err()
		}
		return nil, err
	}
	return out, nil
}

func (l *loop) teacher() *teacher {
	return &teacher{gateway: l.d.Gateway, specs: l.specs, conf: l.cfg.Warmup, seed: l.cfg.Seed, turns: l.cfg.Sampling.MaxTurns}
}

// save writes a checkpoint of the present state and forgets the oldest ones.
func (l *loop) save(ctx context.Context) error {
	began := l.d.Now()
	s := l.st
	s.Attempt = l.lease.Attempt
	s.WallSeconds += l.elapsed()
	s.RLSeconds += l.rlElapsed()
	s.Versions = map[string]int64{}
	keep := l.weights.Names()
	for name, v := range keep {
		s.Versions[name] = int64(v)
	}
	s.Pending = -1
	if l.eval != nil {
		s.Pending = l.eval.version
	}
	if l.pipe != nil {
		s.Position = l.pipe.Position()
	}
	info, err := l.ckpt.write(ctx, s, func(dir string) error {
		if err := l.eng.Save(ctx, dir, keep); err != nil {
			return err
		}
		path := filepath.Join(dir, tokenizerFile)
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		return errors.Join(l.tok.Write(io.Writer(f)), f.Close())
	})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return &diskError{err}
	}
	info.CreatedAt = l.d.Now()
	l.saved, l.savedStep, l.savedWarmup = filepath.Base(info.Dir), s.Step, s.WarmupStep
	if err := l.d.Store.AddCheckpoint(ctx, l.lease, info); err != nil {
		return wrapStore(err)
	}
	where := fmt.Sprintf("step %d", s.Step)
	if s.WarmupStep < s.WarmupSteps {
		where = fmt.Sprintf("warm-start step %d", s.WarmupStep)
	}
	if err := l.event(ctx, "info", "checkpoint", "saved a checkpoint at %s in %d ms", where, l.d.Now().Sub(began).Milliseconds()); err != nil {
		return err
	}
	return l.prune(ctx)
}

// prune keeps the newest checkpoints. It runs after the newest one is durable.
func (l *loop) prune(ctx context.Context) error {
	list, err := l.ckpt.list()
	if err != nil {
		return &diskError{err}
	}
	for _, c := range list[min(len(list), l.cfg.Checkpoint.Keep):] {
		if err := l.d.Store.DeleteCheckpoint(ctx, l.lease, filepath.Join(l.ckpt.rel, c.name)); err != nil && errs.CodeOf(err) != errs.NotFound {
			return wrapStore(err)
		}
		if err := l.ckpt.remove(c.name); err != nil {
			return &diskError{err}
		}
	}
	return nil
}

// stop saves what has been reached and ends the attempt with errStop.
func (l *loop) stop(ctx context.Context) error {
	if l.eval != nil {
		l.eval.cancel() // its version is saved, and it is repeated after a resume
	}
	if l.pipe != nil {
		l.pipe.Stop()
	}
	if err := l.save(ctx); err != nil {
		return err
	}
	return errStop
}

// shut closes the engine, also that of a failed restore.
func (l *loop) shut() {
	if l.eng != nil {
		if err := l.eng.Close(); err != nil {
			l.d.Log.Warn("the engine did not close", "error", err)
		}
	}
	l.eng, l.ref, l.weights, l.tok = nil, nil, nil, nil
}

// close frees everything; it comes after the last use of the loop's parts.
func (l *loop) close() {
	l.abandonEval()
	if l.pipe != nil {
		l.pipe.Stop()
	}
	l.shut()
}
