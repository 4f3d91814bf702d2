package cell

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// engines is the cgroup into which an engine moves where it is to hand
// controllers on: the kernel lets no cgroup but the first have processes of its
// own then. All engines of a parent share it.
const engines = "swarmdeck-engines"

// controllers are those that bound a run as a whole.
var controllers = [...]string{"memory", "pids"}

// handOn gives the runs' cgroups the controllers that this process's own was
// given, as far as the system allows it, and finds where inits go back to.
func (c *cgroups) handOn() {
	var err error
	if c.given = c.delegated(); len(c.given) > 0 {
		err = c.enable(c.parent)
		if errors.Is(err, syscall.EBUSY) && c.stepAside() {
			if err = c.enable(c.parent); err != nil { // somebody came meanwhile
				_ = put(c.parent, "cgroup.procs", strconv.Itoa(os.Getpid()))
				_ = os.Remove(c.own)
				c.own = c.parent
			}
		}
	}
	if err != nil {
		c.given = nil
	}
	if c.procs, err = os.OpenFile(filepath.Join(c.own, "cgroup.procs"), os.O_WRONLY, 0); err != nil {
		c.procs = nil
	}
}

// delegated are the controllers that the parent has and this process may hand on.
func (c *cgroups) delegated() []string {
	if unix.Access(filepath.Join(c.parent, "cgroup.subtree_control"), unix.W_OK) != nil {
		return nil
	}
	has := strings.Fields(switchOf(filepath.Join(c.parent, "cgroup.controllers")))
	return slices.DeleteFunc(slices.Clone(controllers[:]), func(name string) bool { return !slices.Contains(has, name) })
}

// enable hands the controllers on to what is below a cgroup.
func (c *cgroups) enable(dir string) error {
	now := strings.Fields(switchOf(filepath.Join(dir, "cgroup.subtree_control")))
	if !slices.ContainsFunc(c.given, func(name string) bool { return !slices.Contains(now, name) }) {
		return nil
	}
	return put(dir, "cgroup.subtree_control", "+"+strings.Join(c.given, " +"))
}

// stepAside moves this process into a cgroup of its own below the parent, where
// it is alone.
func (c *cgroups) stepAside() bool {
	if switchOf(filepath.Join(c.parent, "cgroup.procs")) != strconv.Itoa(os.Getpid()) {
		return false
	}
	aside := filepath.Join(c.parent, engines)
	if err := os.Mkdir(aside, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return false
	}
	if err := put(aside, "cgroup.procs", strconv.Itoa(os.Getpid())); err != nil {
		_ = os.Remove(aside)
		return false
	}
	c.own = aside
	return true
}

// boundMemory bounds the memory of the run as a whole, before it begins. Past
// it the kernel ends all of the run: what a part of it would leave is of no use.
func (c *cgroups) boundMemory(g *cgroup, l Limits) {
	if most := cmp.Or(l.RunMemory, l.Memory); c.bound(g, "memory", most) {
		g.memory = most
		_ = g.write("memory.swap.max", "0") // there may be no swap at all
		_ = g.write("memory.oom.group", "1")
	}
}

// initThreads is more than the init of a run has, which begins among its processes.
const initThreads = 64

// boundProcesses bounds the processes and threads of the run, besides some that
// are not its own.
func (c *cgroups) boundProcesses(g *cgroup, l Limits, besides uint64) {
	if most := cmp.Or(l.RunProcesses, l.Processes); most > 0 && c.bound(g, "pids", most+besides) {
		g.processes = most
	}
}

func (c *cgroups) bound(g *cgroup, controller string, most uint64) bool {
	if g == nil || most == 0 || !slices.Contains(c.given, controller) {
		return false
	}
	write := func() error { return g.write(controller+".max", strconv.FormatUint(most, 10)) }
	err := write()
	// The engine's cgroup may have been made just now, by any run.
	if errors.Is(err, fs.ErrNotExist) && c.enable(c.dir) == nil {
		err = write()
	}
	return err == nil
}

// overran is the bound on the run's memory, in bytes, when the kernel ended
// processes of it for taking more; 0 otherwise.
func (g *cgroup) overran() uint64 {
	if g == nil || g.memory == 0 {
		return 0
	}
	ended, full := false, false
	for line := range strings.Lines(switchOf(filepath.Join(g.path, "memory.events"))) {
		switch name, n, _ := strings.Cut(strings.TrimSpace(line), " "); name {
		case "oom":
			full = n != "0" // and not because the machine's memory was at its end
		case "oom_kill":
			ended = n != "0"
		}
	}
	if ended && full {
		return g.memory
	}
	return 0
}
