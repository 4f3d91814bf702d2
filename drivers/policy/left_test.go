package policy

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"swarmdeck/expect"
)

// held is what this process holds of what programs could leave behind.
type held struct {
	files, routines, children int
	memory                    uint64 // bytes in use
}

func holdings(t testing.TB) held {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("no /proc to look for what is left")
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return held{len(files), runtime.NumGoroutine(), len(children()), m.HeapAlloc}
}

// nothingLeft waits until this process holds no more than before, and no
// process names one of the marks.
func nothingLeft(t testing.TB, before held, marks ...string) {
	t.Helper()
	const slack = 8 << 20 // bytes
	expect.Await(t, fmt.Sprintf("no more is held than before, %+v, and no process names %q", before, marks), func() bool {
		now := holdings(t)
		return now.files <= before.files && now.routines <= before.routines && now.children <= before.children &&
			now.memory <= before.memory+slack && len(naming(marks)) == 0
	})
}

// children are the processes that this one started, ended or not.
func children() (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		stat, _ := os.ReadFile(file)
		var state string
		var parent int
		// PID (NAME) STATE PARENT …, where the name may have anything in it.
		if i := bytes.LastIndexByte(stat, ')'); i < 0 {
			continue
		} else if _, err := fmt.Sscan(string(stat[i+1:]), &state, &parent); err != nil || parent != os.Getpid() {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// naming are the command lines that have one of the marks.
func naming(marks []string) (all []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		line, _ := os.ReadFile(file)
		for _, mark := range marks {
			if strings.Contains(string(line), mark) {
				all = append(all, string(line))
			}
		}
	}
	return all
}
