package native

import (
	"context"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"agentrl/internal/chat"
	"agentrl/internal/engine"
	"agentrl/internal/errs"
	"agentrl/internal/nn"
	"agentrl/internal/nn/kernel"
	"agentrl/internal/policy"
	"agentrl/internal/tokenizer"
)

// Engine implements engine.Engine on the CPU. Training calls are serialised; policies may generate at any time.
type Engine struct {
	opt     Options
	tok     *tokenizer.Tokenizer
	model   *nn.Model
	budget  Budget
	kernel  kernel.Kernel
	service *service

	train   sync.Mutex // held by training calls; guards the trainer, the model and the reference
	trainer *nn.Trainer
	ref     *reference

	mu       sync.Mutex // guards what follows
	versions map[engine.Version]*version
	closed   bool
}

var (
	_ engine.Engine     = (*Engine)(nil)
	_ engine.Referencer = (*Engine)(nil)
	_ policy.Forgetter  = (*Engine)(nil)
)

// New builds the model, checks that it fits into memory and starts the sampling service, which Close stops.
func New(opt Options) (*Engine, error) {
	opt = opt.withDefaults()
	kern, err := kernel.FromEnv()
	if err != nil {
		return nil, err
	}
	src, err := openBase(&opt)
	if err != nil {
		return nil, err
	}
	budget := newBudget(src.config, &opt)
	if err := budget.check(); err != nil {
		return nil, err
	}
	model, err := src.load(opt.Seed)
	if err != nil {
		return nil, err
	}
	trainer, err := nn.NewTrainer(model, nn.TrainerOptions{Threads: opt.Threads, MicroBatchTokens: opt.MicroBatchTokens})
	if err != nil {
		return nil, err
	}
	e := &Engine{
		opt: opt, tok: src.tok, model: model, trainer: trainer, budget: budget, kernel: kern,
		versions: map[engine.Version]*version{},
	}
	stops := opt.Stops
	if end, ok := src.tok.Special(chat.TokenEnd); ok && len(stops) == 0 {
		stops = []int32{end}
	}
	e.service = newService(serviceOptions{
		threads: opt.Threads, maxBatch: opt.MaxBatch, maxContext: src.config.Context, queueMax: opt.QueueMax,
		parameters: src.config.NumParams(), cacheBytes: opt.CacheBytes, engineID: opt.EngineID, stops: stops, now: opt.Now,
	}, kern)
	e.service.Start()
	opt.Logger.Info("native engine ready", "base", opt.Base, "parameters", src.config.NumParams(), "vocabulary", src.config.Vocab,
		"context", src.config.Context, "kernel", kern.Name(), "threads", opt.Threads, "memory", budget.Total())
	return e, nil
}

func (o Options) withDefaults() Options {
	def := func(p *int, v int) {
		if *p <= 0 {
			*p = v
		}
	}
	def(&o.Threads, runtime.GOMAXPROCS(0))
	def(&o.MicroBatchTokens, 4096)
	def(&o.MaxBatch, 64)
	def(&o.Versions, 4)
	def(&o.QueueMax, 4096)
	if o.MemoryLimit <= 0 {
		o.MemoryLimit = machineMemory() / 2
	}
	if o.EngineID == "" {
		o.EngineID = "native"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Tokenizer returns the tokenizer of the model.
func (e *Engine) Tokenizer() *tokenizer.Tokenizer { return e.tok }

// Config returns the architecture.
func (e *Engine) Config() nn.Config { return e.model.Config() }

// Budget returns what the engine may use of memory, part by part.
func (e *Engine) Budget() Budget { return e.budget }

// Forget frees the KV cache kept under a key, when its episode has ended.
func (e *Engine) Forget(cacheKey string) { e.service.kv.forget(cacheKey) }

// Capabilities says what the engine can do.
func (e *Engine) Capabilities() engine.Capabilities {
	c := e.model.Config()
	return engine.Capabilities{
		Losses:             []engine.LossKind{engine.CrossEntropy, engine.PPO},
		KLReference:        true,
		Entropy:            true,
		Versions:           e.opt.Versions,
		ConcurrentSampling: true,
		MaxContext:         c.Context,
		VocabSize:          c.Vocab,
		Parameters:         int64(c.NumParams()),
		Kernel:             e.kernel.Name(),
	}
}

// Publish copies the current weights, lays them out for decoding and makes them available under v.
func (e *Engine) Publish(ctx context.Context, v engine.Version) (string, error) {
	e.train.Lock()
	defer e.train.Unlock()
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return e.publish(v, e.model.Clone())
}

// publish takes ownership of m.
func (e *Engine) publish(v engine.Version, m *nn.Model) (string, error) {
	if err := e.mayPublish(v); err != nil {
		return "", err
	}
	w := m.Pack()
	ver := &version{number: v, weights: w, model: m, digest: w.Digest()}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.versions[v] = ver
	return ver.digest, nil
}

func (e *Engine) mayPublish(v engine.Version) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch _, ok := e.versions[v]; {
	case e.closed:
		return errClosed
	case v < 0:
		return errs.New(errs.Invalid, "version %d is not allowed; versions count from 0", v)
	case ok:
		return errs.New(errs.Conflict, "version %d is published already; release it first", v)
	case len(e.versions) >= e.opt.Versions:
		return errs.New(errs.Conflict, "%d versions are published, the engine holds at most %d at once; release one first", len(e.versions), e.opt.Versions)
	}
	return nil
}

// Sampler returns the policy that writes with version v. It keeps working after a release, so that a turn which was
// about to start is not lost; its weights are freed with it.
func (e *Engine) Sampler(v engine.Version) (policy.Policy, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errClosed
	}
	ver, err := e.find(v)
	if err != nil {
		return nil, err
	}
	return &sampler{e.service, ver}, nil
}

func (e *Engine) find(v engine.Version) (*version, error) {
	ver, ok := e.versions[v]
	if !ok {
		published := make([]engine.Version, 0, len(e.versions))
		for n := range e.versions {
			published = append(published, n)
		}
		slices.Sort(published)
		return nil, errs.New(errs.NotFound, "version %d is not published; published are %v", v, published)
	}
	return ver, nil
}

// Release frees version v as soon as no running generation uses it.
func (e *Engine) Release(v engine.Version) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	ver, err := e.find(v)
	if err != nil {
		return err
	}
	delete(e.versions, v)
	e.service.retire(ver)
	return nil
}

// Close stops sampling and training. It is idempotent; running generations end with an error.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	e.service.Stop()
	e.train.Lock()
	defer e.train.Unlock()
	e.trainer.Close()
	return nil
}

// sampler is the policy of one version.
type sampler struct {
	service *service
	version *version
}

// ID returns the engine's id.
func (s *sampler) ID() string { return s.service.engineID }

// Version returns the optimizer step of the weights.
func (s *sampler) Version() int64 { return int64(s.version.number) }

// Generate continues the prompt. See policy.Policy.
func (s *sampler) Generate(ctx context.Context, p policy.Prompt, sm policy.Sampling) (policy.Completion, error) {
	return s.service.generate(ctx, s.version, p, sm)
}

// Forget frees the KV cache kept under a key for any version.
func (s *sampler) Forget(cacheKey string) { s.service.kv.forget(cacheKey) }
