package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// machine is where an engine runs: a home of its own. An engine that ends though
// it is wanted is started again, as a service manager does.
type machine struct {
	*user
	path  string // of the data file
	space *space // that the engine is in; nil is that of all
	clock string // file that says how far its clock is off; "" is right

	mu     sync.Mutex
	wanted bool
	cmd    *exec.Cmd
	ended  chan struct{} // the last one did
}

// start has an engine run until kill or the end of the test.
func (m *machine) start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wanted {
		return
	}
	m.wanted, m.ended = true, make(chan struct{})
	go m.keep(m.ended)
}

func (m *machine) keep(ended chan struct{}) {
	defer close(ended)
	if m.space != nil {
		if err := m.space.enter(); err != nil {
			m.t.Error(err)
			return
		}
	}
	said, err := os.OpenFile(filepath.Join(m.home, "serve.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		m.t.Error(err)
		return
	}
	defer said.Close()
	for {
		m.mu.Lock()
		if !m.wanted {
			m.mu.Unlock()
			return
		}
		m.cmd = m.command("serve", "--data", m.path)
		m.cmd.Stderr = said
		err := m.cmd.Start()
		m.mu.Unlock()
		if err != nil {
			m.t.Error(err)
			return
		}
		_ = m.cmd.Wait() // by a signal, or as another engine has its tenants
	}
}

// signal sends the engine one, if it runs.
func (m *machine) signal(sig syscall.Signal) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cmd != nil {
		_ = m.cmd.Process.Signal(sig)
	}
}

// kill ends the engine at once, and keeps it from being started again.
func (m *machine) kill() { m.end(syscall.SIGKILL) }

func (m *machine) end(sig syscall.Signal) {
	m.mu.Lock()
	was := m.wanted
	m.wanted = false
	if was && m.cmd != nil {
		_ = m.cmd.Process.Signal(sig)
	}
	ended := m.ended
	m.mu.Unlock()
	if was {
		<-ended
	}
}

// said is the end of what the engines there wrote.
func (m *machine) said() string {
	text, _ := os.ReadFile(filepath.Join(m.home, "serve.log"))
	return string(text[max(0, len(text)-2000):])
}
