package postgrestest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"swarmdeck/expect"
)

// StartDurable is Start of a server that syncs, with the settings it comes with: for
// benchmarks.
func StartDurable(t testing.TB) *Cluster {
	t.Helper()
	return Start(t, "fsync=on", "full_page_writes=on", "shared_buffers=128MB",
		"max_wal_size=4GB") // or the checkpoints of one fall into the time of another
}

// ProcessorTime is what the server's processes have taken since it started. It reads
// /proc, where there is one.
func (c *Cluster) ProcessorTime(t testing.TB) (sum time.Duration) {
	t.Helper()
	const tick = time.Second / 100 // of the kernel's figures
	all := expect.Of(filepath.Glob("/proc/[0-9]*/stat"))(t)
	main := strconv.Itoa(c.server.Process.Pid)
	for _, name := range all {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // from the third on
		if len(fields) < 15 {
			continue
		}
		from := fields[11:11] // user and system, and those of children that ended
		switch {
		case filepath.Dir(name) == fmt.Sprint("/proc/", main):
			from = fields[11:15]
		case string(fields[1]) == main:
			from = fields[11:13]
		}
		for _, ticks := range from {
			n := expect.Of(strconv.Atoi(string(ticks)))(t)
			sum += time.Duration(n) * tick
		}
	}
	return sum
}
