package host_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/drivertest/hosttest"
	driver "swarmdeck/drivers/host"
	"swarmdeck/drivers/host/hold"
	"swarmdeck/drivers/keeper"
	"swarmdeck/engine/files"
	"swarmdeck/engine/host"
	"swarmdeck/expect"
)

// TestMain makes the tests' program what the engine's is, here and on the hosts.
func TestMain(m *testing.M) {
	if code, is := cell.Entered(os.Args, os.Environ()); is {
		syscall.Exit(code)
	}
	if code, is := hold.Entered(os.Args); is {
		syscall.Exit(code)
	}
	if code, is := hosttest.Entered(os.Args); is {
		syscall.Exit(code)
	}
	if err := cell.BecomeSubreaper(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// box is a host that is this machine with another home, reached by a command.
type box struct {
	*testing.T
	cells  *cell.Supervisor
	pool   *driver.Pool
	host   host.Host
	home   string
	agents []string
	gate   gate
	ended  chan struct{}
	stop   context.CancelFunc
	guard  []string // that the project of whoever runs adds
	heldMu sync.Mutex
	held   []cell.Held
}

func newBox(t *testing.T, change func(*host.Host)) *box {
	t.Helper()
	b := &box{T: t, home: t.TempDir(), agents: []string{"A"}}
	b.host = host.Host{TenantID: "t_home", Name: "box", Slots: 4, LeaseS: 5, Command: hosttest.Command(t, b.home), CreatedAt: time.Now()}
	if change != nil {
		change(&b.host)
	}
	b.cells = drivertest.Cells(t, cell.Options{})
	b.pool = b.again()
	t.Cleanup(func() {
		b.leave()
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
		defer stop()
		expect.Is(t, b.pool.Clear(ctx, b.host), nil, "clear")
		b.await("no keeper is left", func() bool { return len(b.keepers("")) == 0 })
	})
	b.enter()
	return b
}

// enter links to it.
func (b *box) enter() {
	ctx, stop := context.WithCancel(context.Background())
	b.stop, b.ended = stop, make(chan struct{})
	go func() {
		defer close(b.ended)
		_ = b.pool.Keep(ctx, b.host)
	}()
	b.await("it is up", func() bool { return b.state() == host.Up })
}

func (b *box) leave() { b.stop(); <-b.ended }

func (b *box) state() string { return b.pool.Link("t_home", "box").State }

func (b *box) await(what string, ok func() bool) {
	b.Helper()
	expect.Await(b, what, ok)
}

func (b *box) start(argv ...string) keeper.Process {
	b.Helper()
	return expect.Of(b.try(argv...))(b)
}

func (b *box) try(argv ...string) (keeper.Process, error) {
	return b.pool.Start("t_home", "box", spec(argv...), keeper.Hosted{})
}

func spec(argv ...string) cell.Spec {
	return cell.Spec{Argv: argv, Whose: cell.Whose{Tenant: "t_home", Agent: "A"}, Limits: cell.DefaultLimits()}
}

// keepers are the processes that hold or link for this host, by what they do; ""
// is either.
func (b *box) keepers(what string) (pids []int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		words := strings.Split(string(line), "\x00")
		if len(words) < 4 || words[1] != hold.Word || !strings.HasPrefix(words[0], b.home) || what != "" && words[2] != what {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(dir))
		pids = append(pids, pid)
	}
	return pids
}

// cut ends the link.
func (b *box) cut() {
	b.Helper()
	for _, pid := range b.keepers("link") {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	b.await("the link is lost", func() bool { return b.state() != host.Up })
}

// block keeps it from coming back until the returned function is called.
func (b *box) block() (free func()) {
	dir := filepath.Join(b.home, ".cache", "swarmdeck")
	away := dir + ".away"
	b.cut()
	expect.No(b, os.Rename(dir, away))
	expect.No(b, os.WriteFile(dir, nil, 0o600))
	return func() {
		_ = os.Remove(dir)
		expect.No(b, os.Rename(away, dir))
	}
}

// out collects what a process writes.
type out struct {
	bytes.Buffer
	done chan struct{}
}

func collect(f *os.File) *out {
	o := &out{done: make(chan struct{})}
	go func() {
		defer close(o.done)
		_, _ = io.Copy(&o.Buffer, f)
	}()
	return o
}

func (o *out) all() string {
	<-o.done
	return o.String()
}

// end stops a process and lets go of it.
func end(p keeper.Process) error {
	defer p.CloseIO()
	return p.Stop(cell.Grace{Interrupt: -1, Terminate: -1})
}

func kill(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }

// again is another start of the engine.
func (b *box) again() *driver.Pool {
	return driver.New(driver.Options{
		Cells: b.cells, Agents: func(string, string) []string { return b.agents }, Grace: time.Second, Way: b.gate.take, Over: b.gate.ended,
		Files: func(cell.Whose) (files.Places, error) { return files.Places{Guard: b.guard}, nil },
		Held: func(h cell.Held) {
			b.heldMu.Lock()
			defer b.heldMu.Unlock()
			b.held = append(b.held, h)
		},
	})
}
