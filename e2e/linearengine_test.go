package e2e

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/store/postgres/postgrestest"
)

// machine is where an engine runs: a home of its own. An engine that ends though
// it is wanted is started again, as a service manager does.
type machine struct {
	*user
	path string // of the data file

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
		time.Sleep(50 * time.Millisecond)
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

// fault is something that fails. inject has it happen to a fleet and returns what
// makes it well again: at once, or after others have carried a change out, where they
// can.
type fault struct {
	name   string
	others bool
	inject func(f *fleet, random *rand.Rand) (heal func())
}

// killed is the end of the engine that is at work, and the start of the next there.
func killed(name string, others bool) fault {
	return fault{name, others, func(f *fleet, _ *rand.Rand) func() {
		m := f.working()
		m.kill()
		return m.start
	}}
}

// suspended is that the engine at work stands still for longer than its lease, and
// wakes while another has its place.
func suspended() fault {
	return fault{"SIGSTOP", true, func(f *fleet, _ *rand.Rand) func() {
		m := f.working()
		m.signal(unix.SIGSTOP)
		return func() { m.signal(unix.SIGCONT) }
	}}
}

// restarted is that the database crashes and comes back.
func restarted(t testing.TB, pg *postgrestest.Cluster) fault {
	return fault{"PostgreSQL restarts", false, func(_ *fleet, random *rand.Rand) func() {
		pg.Kill(t)
		time.Sleep(time.Duration(random.Int64N(int64(time.Second))))
		return func() { pg.Run(t) }
	}}
}

// cut is that all connections to the database end.
func cut(t testing.TB, pg *postgrestest.Cluster, database string) fault {
	return fault{"connections are cut", false, func(*fleet, *rand.Rand) func() {
		pg.SQL(t, database, "select count(pg_terminate_backend(pid)) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid()")
		return func() {}
	}}
}
