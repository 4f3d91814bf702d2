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
	spared := lineage()
	done := map[proc]bool{}
	for {
		left := marked(instance+"/", spared)
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

// marked lists the live processes whose mark begins with prefix, and their
// descendants.
func marked(prefix string, spared map[int]bool) []proc {
	all := map[int]proc{}
	for _, pid := range numbers("/proc") {
		if p, ok := look(pid); ok && !p.dead() {
			all[pid] = p
		}
	}
	verdict := map[int]bool{}
	var belongs func(pid int) bool
	belongs = func(pid int) bool {
		if v, ok := verdict[pid]; ok {
			return v
		}
		p, ok := all[pid]
		if !ok || spared[pid] {
			return false
		}
		verdict[pid] = false // ends a loop that a changing /proc could show
		v := strings.HasPrefix(markOf(pid), prefix) || belongs(p.ppid)
		verdict[pid] = v
		return v
	}
	var list []proc
	for pid, p := range all {
		if belongs(pid) {
			list = append(list, p)
		}
	}
	return list
}
