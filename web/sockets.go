package web

import "sync"

// sockets knows the open live connections, so that a revoked session ends its own at once and a stopping server all.
type sockets struct {
	mu     sync.Mutex
	open   map[*socket]bool
	closed bool
	wg     sync.WaitGroup
}

func newSockets() *sockets { return &sockets{open: map[*socket]bool{}} }

// add reports false when the server is stopping.
func (m *sockets) add(so *socket) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.open[so] = true
	m.wg.Add(1)
	return true
}

func (m *sockets) remove(so *socket) {
	m.mu.Lock()
	delete(m.open, so)
	m.mu.Unlock()
	m.wg.Done()
}

// recheck makes every connection ask again whether its credentials hold; called after sessions, roles or tokens change.
func (m *sockets) recheck() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for so := range m.open {
		select {
		case so.verify <- struct{}{}:
		default: // it will ask anyway
		}
	}
}

func (m *sockets) closeAll() {
	m.mu.Lock()
	m.closed = true
	all := make([]*socket, 0, len(m.open))
	for so := range m.open {
		all = append(all, so)
	}
	m.mu.Unlock()
	for _, so := range all {
		so.Close("the server is stopping")
	}
}

func (m *sockets) wait() { m.wg.Wait() }
