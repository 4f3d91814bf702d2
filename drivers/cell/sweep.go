package cell

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sweepPatience is how long an init may take to keep what there is to keep, once
// it is told to end. Freezing its cell is most of it.
const sweepPatience = freezePatience + time.Second

// Sweep ends every cell that a former engine of this instance has left. Call it
// at start, after taking the data file's lock. It returns how many it ended. An
// engine may be started from inside a cell of its own: that one is spared.
func (s *Supervisor) Sweep(ctx context.Context) (ended int, err error) {
	s.scour()
	defer s.cgroups.sweep()
	done := map[proc]bool{}
	for began := time.Now(); ; {
		spared := lineage()
		for init := range s.inits() {
			for _, kid := range descendants(init) {
				spared[kid.PID] = true
			}
		}
		var left []proc
		for _, pid := range numbers("/proc") {
			if spared[pid] {
				continue
			}
			run, engine := ofInit(pid)
			if run == "" {
				run = markOf(pid) // one whose init was killed too
			}
			if engine == s.name || !strings.HasPrefix(run, s.opt.Instance+"/") {
				continue
			}
			if p, ok := look(pid); ok && !p.Dead() {
				left = append(left, p)
			}
		}
		if len(left) == 0 {
			return ended, nil
		}
		for _, p := range left {
			run, _ := ofInit(p.PID)
			key := p.name()
			if run != "" && !strings.HasSuffix(run, noRun) && !done[key] {
				done[key] = true
				ended++
			}
		}
		own := map[int]bool{} // of cells that their inits end
		if time.Since(began) < sweepPatience {
			own = callOn(left)
		}
		for _, p := range left {
			if own[p.PID] {
				continue
			}
			run, _ := ofInit(p.PID)
			// Where there are no name spaces its children go first, and what they
			// had started meanwhile is its own then.
			kids := slices.DeleteFunc(descendants(p.PID), proc.Dead)
			for _, kid := range kids {
				kid.send(unix.SIGKILL)
			}
			if run == "" || len(kids) == 0 || innerPID(p.PID) == 1 {
				p.send(unix.SIGKILL)
			}
		}
		select {
		case <-ctx.Done():
			return ended, fmt.Errorf("sweep cells of %s: left: %s: %w", s.opt.Instance, describe(left), ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// callOn has the inits among processes keep what there is to keep and end their
// cells, and returns the numbers of all that these hold.
func callOn(list []proc) map[int]bool {
	own := map[int]bool{}
	for _, p := range list {
		if run, _ := ofInit(p.PID); run == "" {
			continue
		}
		own[p.PID] = true
		for _, kid := range descendants(p.PID) {
			own[kid.PID] = true
		}
		p.send(unix.SIGTERM)
	}
	return own
}

// scour removes the directories of runs of former engines.
func (s *Supervisor) scour() {
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), s.scratchName()+"*"))
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, dir := range old {
		mine := false
		for p := range s.live {
			mine = mine || p.own == dir
		}
		if !mine {
			_ = os.RemoveAll(dir)
		}
	}
}

// strays ends what an init has left that was killed where there are no name
// spaces: its children are this process's now. Those of a terminal are in the
// session of the first.
func (s *Supervisor) strays(p *Process, first int) {
	if p.spaces {
		return
	}
	for {
		left := false
		own := s.inits()
		for _, pid := range childrenOf(os.Getpid()) {
			if own[pid] != nil {
				continue
			}
			q, ok := look(pid)
			if !ok || q.Session != p.init && (first == 0 || q.Session != first) && markOf(pid) != p.run {
				continue
			}
			left = true
			for _, kid := range descendants(pid) {
				kid.send(unix.SIGKILL)
			}
			q.send(unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
		if !left {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// lineage is this process and its ancestors.
func lineage() map[int]bool {
	line := map[int]bool{}
	for pid := os.Getpid(); pid > 0 && !line[pid]; {
		line[pid] = true
		p, ok := look(pid)
		if !ok {
			break
		}
		pid = p.Parent
	}
	return line
}

// scratchName begins the names of the directories of this engine's runs.
func (s *Supervisor) scratchName() string { return "swarmdeck-" + s.opt.Instance + "-" }
