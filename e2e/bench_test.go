package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creack/pty"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// BenchmarkCockpit starts the real binary in a real terminal, on an empty file
// and on one with a million finished tasks, and prints the time to the first
// frame, the share of a core it takes when idle, its anonymous memory and the
// time of one history page by command. SWARMDECK_BENCH_STORED sets the size.
func BenchmarkCockpit(b *testing.B) {
	size := 1_000_000
	if s := os.Getenv("SWARMDECK_BENCH_STORED"); s != "" {
		var err error
		size, err = strconv.Atoi(s)
		expect.No(b, err)
	}
	binary := filepath.Join(b.TempDir(), "swarmdeck")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		b.Fatalf("build: %v\n%s", err, out)
	}
	var empty float64
	for _, n := range []int{0, size} {
		data := filepath.Join(b.TempDir(), "bench.db")
		fill(b, data, n)
		b.Run(fmt.Sprintf("stored=%d", n), func(b *testing.B) {
			var first []time.Duration
			for range 5 {
				first = append(first, firstFrame(b, binary, data))
			}
			ms := float64(least(first).Microseconds()) / 1000
			if n == 0 {
				empty = ms
			}
			idle, memory := idleCost(b, binary, data)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ms, "ms-to-first-frame")
			b.ReportMetric(ms/empty, "x-empty")
			b.ReportMetric(idle*100, "idle-%-of-a-core")
			b.ReportMetric(memory, "MB-anonymous")
		})
	}
}

func least(list []time.Duration) time.Duration {
	best := list[0]
	for _, d := range list {
		best = min(best, d)
	}
	return best
}

// fill makes a data file with n finished tasks, through the engine.
func fill(b *testing.B, data string, n int) {
	sealer := expect.Of(audit.OpenSealer(data + ".key"))(b)
	db := expect.Of(store.Open(data, store.Options{Seal: sealer.Seal}))(b)
	defer db.Close()
	e := expect.Of(engine.Open(b.Context(), engine.Options{Store: db, Sealer: sealer, Runners: map[string]swarm.Runner{"exec.run": echoed{}}}))(b)
	defer e.Close()
	by := core.Caller{Tenant: "t_bench", Name: "alice", Kind: core.Operator, Door: core.DoorCLI}
	expect.Of(e.Swarm.CreateTenant(b.Context(), by, by.Tenant))(b)
	input := core.Raw(`{"argv":["echo","` + strings.Repeat("x", 1000) + `"]}`)
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for p := range 256 {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := life(e, by, input, fmt.Sprint("w", p)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func life(e *engine.Engine, by core.Caller, input core.Raw, worker string) error {
	ctx := context.Background()
	if _, err := e.Swarm.Dispatch(ctx, by, swarm.Dispatch{Kind: "exec.run", Input: input}); err != nil {
		return err
	}
	tasks, err := e.Swarm.Claim(ctx, by, worker, 1)
	for _, t := range tasks {
		if _, err := e.Swarm.Complete(ctx, by, t.TaskID, t.Lease, task.Outcome{Status: task.Succeeded, Output: core.Raw(`{"rc":0}`)}); err != nil {
			return err
		}
	}
	return err
}

// echoed stands for the exec runner while the file is filled; it never runs.
type echoed struct{}

func (echoed) Check(_ string, input core.Raw) (string, judge.Action, error) {
	return "echo", judge.Action{Kind: "exec.run", Args: input}, nil
}
func (echoed) Slot(string, string) (bool, string) { return true, "" }
func (echoed) Start(context.Context, swarm.Job) (swarm.Work, error) {
	return nil, core.Errorf(core.Unavailable, "not run here")
}

// terminal runs the cockpit at 200x50 and reads what it draws.
func terminal(b *testing.B, binary, data string) (*exec.Cmd, *os.File) {
	cmd := exec.Command(binary, "--data", data)
	cmd.Env = []string{"HOME=" + b.TempDir(), "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8", "USER=alice"}
	tty := expect.Of(pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 200}))(b)
	return cmd, tty
}

// firstFrame is the time from the start of the process to the first screen
// that names the tenant.
func firstFrame(b *testing.B, binary, data string) time.Duration {
	start := time.Now()
	cmd, tty := terminal(b, binary, data)
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		tty.Close()
	}()
	var seen []byte
	buf := make([]byte, 64<<10)
	for !bytes.Contains(seen, []byte("t_bench")) {
		n, err := tty.Read(buf)
		expect.No(b, err, "the cockpit ended", seen)
		seen = append(seen, buf[:n]...)
		if time.Since(start) > 20*time.Second {
			b.Fatalf("no first frame:\n%s", seen)
		}
	}
	return time.Since(start)
}

// idleCost is the share of a core and the anonymous memory, in MB, of a
// cockpit that nothing happens in.
func idleCost(b *testing.B, binary, data string) (share, mb float64) {
	cmd, tty := terminal(b, binary, data)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		buf := make([]byte, 64<<10)
		for {
			if _, err := tty.Read(buf); err != nil {
				return
			}
		}
	}()
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		tty.Close()
		<-drained
	}()
	const settle, watch = 3 * time.Second, 20 * time.Second
	time.Sleep(settle)
	before := ticks(b, cmd.Process.Pid)
	time.Sleep(watch)
	share = float64(ticks(b, cmd.Process.Pid)-before) / 100 / watch.Seconds()
	status := expect.Of(os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)))(b)
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	kb := expect.Of(strconv.ParseFloat(strings.Fields(rest)[0], 64))(b)
	return share, kb / 1024
}

// ticks is the processor time of a process, in hundredths of a second.
func ticks(b *testing.B, pid int) int {
	stat := expect.Of(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))(b)
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, err1 := strconv.Atoi(f[11])
	system, err2 := strconv.Atoi(f[12])
	if err1 != nil || err2 != nil {
		b.Fatalf("read %s", stat)
	}
	return user + system
}
