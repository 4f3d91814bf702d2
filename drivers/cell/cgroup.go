package cell

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// cgroups makes a cgroup for each run, below this process's own, where that
// is allowed. A nil one makes none.
type cgroups struct {
	parent string // in which the engine's is made
	dir    string // of this engine's
	own    string // in which this process is

	once  sync.Once // for the next two
	procs *os.File  // of this process's own: inits go back there
	given []string  // controllers that runs are bounded by

	mu  sync.Mutex
	off bool
}

// findCgroups looks for a tree of version 2 in which cgroups may be made.
func findCgroups(instance string) *cgroups {
	mounted, own := cgroupMount(), cgroupOwn()
	if mounted == "" || own == "" {
		return nil
	}
	return cgroupsAt(filepath.Join(mounted, own), instance)
}

// cgroupsAt is those that a process in a cgroup can make, nil for none.
func cgroupsAt(own, instance string) *cgroups {
	c := &cgroups{own: own, parent: own}
	if filepath.Base(own) == engines {
		c.parent = filepath.Dir(own)
	}
	c.dir = filepath.Join(c.parent, "swarmdeck-"+strings.ReplaceAll(instance, ".", "_"))
	if unix.Access(filepath.Join(own, "cgroup.procs"), unix.W_OK) != nil {
		return nil
	}
	return c
}

func cgroupMount() string {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		if fields := strings.Fields(before); ok && strings.HasPrefix(after, "cgroup2 ") && len(fields) > 4 && fields[3] == "/" {
			return fields[4]
		}
	}
	return ""
}

func cgroupOwn() string {
	data, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(data) {
		if path, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("0::")); ok {
			return string(path)
		}
	}
	return ""
}

// distrust makes no more of them: the system let one be made, but no process
// go into it.
func (c *cgroups) distrust() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = true
}

func (c *cgroups) distrusted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.off
}

// cgroup is one run's. A nil one does nothing.
type cgroup struct {
	path string
	dir  *os.File
	// What the run as a whole is bounded to: bytes and processes, 0 for not.
	memory, processes uint64
}

// make makes one; nil where there can't be.
func (c *cgroups) make() *cgroup {
	if c == nil || c.distrusted() {
		return nil
	}
	c.once.Do(c.handOn)
	if c.procs == nil {
		return nil
	}
	// Another supervisor of this data file removes the directory when it leaves.
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil
	}
	// One that is there may be another's: to end it would end that one's run.
	path, err := os.MkdirTemp(c.dir, strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		_ = os.Remove(path)
		return nil
	}
	return &cgroup{path: path, dir: dir}
}

// hold bounds a run to its limits, with room for its init.
func (c *cgroups) hold(g *cgroup, l Limits) {
	if g != nil {
		c.boundMemory(g, l)
		c.boundProcesses(g, l, initThreads)
	}
}

func (c *cgroups) close() {
	if c != nil {
		if c.procs != nil {
			c.procs.Close()
		}
		_ = os.Remove(c.dir)
	}
}

// sweep ends what former engines left, and removes it.
func (c *cgroups) sweep() {
	if c == nil {
		return
	}
	entries, _ := os.ReadDir(c.dir)
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), strconv.Itoa(os.Getpid())+"-") {
			continue
		}
		path := filepath.Join(c.dir, e.Name())
		if dir, err := os.Open(path); err == nil {
			g := &cgroup{path: path, dir: dir}
			g.kill()
			g.remove()
		}
	}
}

// write opens by name: the cgroup may be removed meanwhile, and its descriptor
// be another file's.
func (g *cgroup) write(name, value string) error { return put(g.path, name, value) }

// put writes a file of a cgroup's directory.
func put(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(value)
	return err
}

// freeze stops all of the cgroup, or lets it go on, and returns when that is so.
func (g *cgroup) freeze(ctx context.Context, on bool) error {
	want, value := []byte("frozen 0"), "0"
	if on {
		want, value = []byte("frozen 1"), "1"
	}
	if err := g.write("cgroup.freeze", value); err != nil {
		return err
	}
	for wait := 100 * time.Microsecond; ; wait = min(2*wait, 10*time.Millisecond) {
		data, err := os.ReadFile(filepath.Join(g.path, "cgroup.events"))
		if err != nil {
			return fmt.Errorf("look whether the run is frozen: %w", err)
		}
		if bytes.Contains(data, want) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// kill ends all of it.
func (g *cgroup) kill() {
	if g != nil {
		_ = g.write("cgroup.kill", "1")
	}
}

// remove removes it. Its last processes may be on their way out still.
func (g *cgroup) remove() {
	if g == nil {
		return
	}
	defer g.dir.Close()
	for wait := time.Duration(0); wait < 50*time.Millisecond; wait += time.Millisecond {
		if err := os.Remove(g.path); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
