package exec

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/core"
)

// Sweep kills every process that an engine of this instance has started and
// not ended, found by the mark in its environment or by descent from one
// that has it. Call it at start, after taking the data file's lock, before
// anything runs: what it finds then was left by an engine that died. It
// returns how many it killed. The caller itself and its ancestors are spared,
// so an engine may be started from inside an agent.
func Sweep(ctx context.Context, instance string) (killed int, err error) {
	if instance == "" || strings.Contains(instance, "/") {
		return 0, core.Invalid("instance", instance, `a name without "/"`)
	}
	return sweep(ctx, instance, func(proc) bool { return false })
}

// Sweep is Sweep for the supervisor's instance. What the supervisor itself has
// started meanwhile goes on.
func (s *Supervisor) Sweep(ctx context.Context) (killed int, err error) {
	return sweep(ctx, s.instance, func(p proc) bool { return s.isMain(p.pid) || tagOf(p.pid)>>32 == s.tagBase>>32 })
}

// sweep kills what an instance has left, but for what is its caller's own and
// descends from that.
func sweep(ctx context.Context, instance string, own func(proc) bool) (killed int, err error) {
	spared := lineage()
	done := map[proc]bool{}
	for {
		left := marked(instance+"/", spared, own)
		if len(left) == 0 {
			return killed, nil
		}
		for _, q := range left {
			q.send(unix.SIGKILL)
			if q.ppid == os.Getpid() {
				collect(q.pid)
			}
			key := proc{pid: q.pid, start: q.start}
			if !done[key] {
				done[key] = true
				killed++
			}
		}
		select {
		case <-ctx.Done():
			return killed, fmt.Errorf("sweep processes of %s: left: %s: %w", instance, describe(left), ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
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
		pid = p.ppid
	}
	return line
}

// kin is what a process is to a sweep.
type kin int

const (
	stranger kin = iota
	leftover
	ours
)

// marked lists the live processes whose mark begins with prefix, and their
// descendants.
func marked(prefix string, spared map[int]bool, own func(proc) bool) []proc {
	all := map[int]proc{}
	for _, pid := range numbers("/proc") {
		if p, ok := look(pid); ok && !p.dead() {
			all[pid] = p
		}
	}
	verdict := map[int]kin{}
	var judge func(pid int) kin
	judge = func(pid int) kin {
		if v, ok := verdict[pid]; ok {
			return v
		}
		p, ok := all[pid]
		if !ok || spared[pid] {
			return stranger
		}
		verdict[pid] = stranger // ends a loop that a changing /proc could show
		v := judge(p.ppid)
		switch {
		case v == ours || own(p):
			v = ours
		case strings.HasPrefix(markOf(pid), prefix):
			v = leftover
		}
		verdict[pid] = v
		return v
	}
	var list []proc
	for pid, p := range all {
		if judge(pid) == leftover {
			list = append(list, p)
		}
	}
	return list
}
