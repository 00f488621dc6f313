package nn

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// pool runs numbered tasks on a fixed number of goroutines. Tasks are the same for any width and write to separate
// places, so results do not depend on the width; who takes which task is first come, first served.
type pool struct {
	width int
	start []chan struct{}
	next  atomic.Int64
	total int
	task  func(worker, i int)
	wg    sync.WaitGroup
	once  sync.Once
}

func newPool(threads int) *pool {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	p := &pool{width: min(threads, 256)}
	for w := 1; w < p.width; w++ {
		c := make(chan struct{})
		p.start = append(p.start, c)
		go func() {
			for range c {
				p.work(w)
				p.wg.Done()
			}
		}()
	}
	return p
}

// run calls task(worker, i) for i in [0, total) and returns when all are done.
func (p *pool) run(total int, task func(worker, i int)) {
	n := min(p.width, total) - 1
	if n <= 0 {
		for i := range total {
			task(0, i)
		}
		return
	}
	p.task, p.total = task, total
	p.next.Store(0)
	p.wg.Add(n)
	for _, c := range p.start[:n] {
		c <- struct{}{}
	}
	p.work(0)
	p.wg.Wait()
	p.task = nil
}

func (p *pool) work(worker int) {
	for {
		i := int(p.next.Add(1)) - 1
		if i >= p.total {
			return
		}
		p.task(worker, i)
	}
}

func (p *pool) close() {
	p.once.Do(func() {
		for _, c := range p.start {
			close(c)
		}
	})
}
