package cell

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
)

// trials is how many cells are started: CELL_TRIALS=1000 is the long form.
func trials() int {
	if n, err := strconv.Atoi(os.Getenv("CELL_TRIALS")); err == nil && n > 0 {
		return n
	}
	return 60
}

// churn is an engine that starts cells of all kinds, four at a time, and ends
// each at some instant, until it is killed. It writes a byte for each start.
func churn(instance string) {
	opt := Options{Instance: instance}
	if without := os.Getenv("CELL_TEST_LESS"); without != "" {
		opt.Without = strings.Split(without, ",")
	}
	s, err := NewSupervisor(opt)
	if err != nil {
		panic(err)
	}
	count, err := os.OpenFile("count", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	dir, err := filepath.Abs("work")
	if err != nil {
		panic(err)
	}
	profiles := []Profile{Worker, Worker, Reader, Open}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				_, _ = count.Write([]byte{'x'})
				p, err := s.Start(Spec{
					Run: strconv.Itoa(i) + "-" + strconv.Itoa(n), Dir: dir, Wall: Wall{Profile: profiles[rand.IntN(len(profiles))]},
					Argv: sh(`sleep 300 & (setsid sleep 300 &) ; sleep 0.0` + strconv.Itoa(rand.IntN(9)) + `; [ $$ -gt 7 ] || sleep 300`),
				})
				if err != nil {
					_, _ = os.Stderr.WriteString(err.Error() + "\n")
					os.Exit(1)
				}
				for range rand.IntN(20) {
					_, _ = os.ReadDir("/proc") // at any instant of its life
				}
				switch rand.IntN(5) {
				case 0:
					_ = p.child.Signal(unix.SIGKILL)
				case 1:
					_ = unix.Kill(p.pid, unix.SIGKILL)
				case 2:
					_ = p.Pause(context.Background())
				}
				if err := p.Stop(Grace{Interrupt: time.Millisecond, Terminate: time.Millisecond}); err != nil {
					_, _ = os.Stderr.WriteString(err.Error() + "\n")
					os.Exit(1)
				}
				p.CloseIO()
			}
		})
	}
	wg.Wait()
}

// TestNothingIsLeftOfCellsAndEnginesKilledAtRandom kills cells, and the engines
// that started them, at any instant, and looks for what is left after the next
// engine's sweep.
func TestNothingIsLeftOfCellsAndEnginesKilledAtRandom(t *testing.T) {
	instance := "crash" + strconv.Itoa(os.Getpid())
	dir := yard(t)
	work := filepath.Join(dir, "work")
	expect.No(t, os.Mkdir(work, 0o777))
	if os.Geteuid() == 0 {
		expect.No(t, os.Chown(work, nobody, nobody))
	}
	mounts := expect.Of(os.ReadFile("/proc/self/mountinfo"))(t)
	started := func() int {
		info, err := os.Stat(filepath.Join(dir, "count"))
		if err != nil {
			return 0
		}
		return int(info.Size())
	}
	engines, swept := 0, 0
	for ; started() < trials(); engines++ {
		cmd := exec.Command("/proc/self/exe")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CELL_TEST_CHURN="+instance)
		cmd.Env = append(cmd.Env, "CELL_TEST_LESS="+[]string{"", layerCgroup, layerSpaces}[engines%3])
		var errs bytes.Buffer
		cmd.Stderr = &errs
		expect.No(t, cmd.Start())
		before := started()
		until := before + 1 + rand.IntN(10)
		expect.Await(t, "it starts cells", func() bool { return started() >= until })
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		expect.True(t, errs.Len() <= 0, "engine %d: %s", engines, errs.String())
		next := expect.Of(NewSupervisor(Options{Instance: instance}))(t)
		n := expect.Of(next.Sweep(t.Context()))(t)
		swept += n
		collectOrphans(t, "")
		next.cgroups.sweep()
		expect.No(t, next.Close())
		for _, what := range leftOf(instance) {
			t.Errorf("after engine %d: left: %s", engines, what)
		}
	}
	now, _ := os.ReadFile("/proc/self/mountinfo")
	expect.True(t, bytes.Equal(now, mounts), "mounts are not what they were:\n%s\n%s", mounts, now)
	t.Logf("%d cells of %d engines; %d cells swept", started(), engines, swept)
}

// leftOf lists processes, cgroups, and files of an instance.
func leftOf(instance string) (all []string) {
	for _, pid := range numbers("/proc") {
		run, _ := ofInit(pid)
		if p, ok := look(pid); ok && !p.Dead() && pid != os.Getpid() && (strings.HasPrefix(run, instance+"/") || strings.HasPrefix(markOf(pid), instance+"/")) {
			all = append(all, "process "+strconv.Itoa(pid)+" "+strings.ReplaceAll(nameOf(pid), "\x00", " "))
		}
	}
	for _, pattern := range []string{
		"/sys/fs/cgroup/swarmdeck-" + instance, "/sys/fs/cgroup/*/swarmdeck-" + instance, "/sys/fs/cgroup/*/*/swarmdeck-" + instance,
		filepath.Join(os.TempDir(), "swarmdeck-"+instance+"-*"), "/dev/shm/*" + instance + "*",
	} {
		found, _ := filepath.Glob(pattern)
		all = append(all, found...)
	}
	sockets, _ := os.ReadFile("/proc/net/unix")
	if bytes.Contains(sockets, []byte(instance)) {
		all = append(all, "a socket")
	}
	return all
}

// BenchmarkStart compares the start of a cell, until its command has ended,
// with that of a plain process. SWARMDECK_BENCH_PROGRAM is a program whose cells
// are measured; without it the test's own is the init. SWARMDECK_BENCH_GAP is
// the time between one and the next, 0 if not given.
func BenchmarkStart(b *testing.B) {
	dir := yard(b)
	plain := func(b *testing.B) {
		for b.Loop() {
			expect.No(b, exec.Command("/bin/true").Run())
		}
	}
	b.Run("plain", plain)
	s := newSupervisor(b)
	gap, _ := time.ParseDuration(os.Getenv("SWARMDECK_BENCH_GAP"))
	if program := os.Getenv("SWARMDECK_BENCH_PROGRAM"); program != "" {
		s.opt.Program = program
	}
	s.opt.Keep = filepath.Join(dir, "kept")
	for _, c := range []struct {
		name    string
		profile Profile
		keep    *Keep
	}{{"open", Open, nil}, {"reader", Reader, nil}, {"worker", Worker, nil}, {"worker kept", Worker, &Keep{Stdout: true}}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				p, err := s.Start(Spec{Run: "bench", Argv: []string{"/bin/true"}, Dir: dir, Wall: Wall{Profile: c.profile}, Keep: c.keep})
				expect.No(b, err)
				p.Exit()
				b.StopTimer()
				_ = p.Stop(Grace{Interrupt: -1, Terminate: -1})
				p.CloseIO()
				time.Sleep(gap)
				b.StartTimer()
			}
			cell := b.Elapsed() / time.Duration(b.N)
			began := time.Now()
			const n = 50
			for range n {
				expect.No(b, exec.Command("/bin/true").Run())
			}
			alone := time.Since(began) / n
			b.ReportMetric(float64(cell.Microseconds())/1000, "ms/start")
			b.ReportMetric(float64((cell-alone).Microseconds())/1000, "ms-more")
			b.ReportMetric(float64(cell)/float64(alone), "x-plain")
		})
	}
}

// BenchmarkFreeze freezes 200 runs and lets them go on.
func BenchmarkFreeze(b *testing.B) {
	const n = 200
	for name, without := range map[string][]string{"cgroup": nil, "signals": {layerCgroup}, "bare": {layerCgroup, layerSpaces}} {
		b.Run(name, func(b *testing.B) {
			s := newSupervisor(b, without...)
			dir := yard(b)
			all := make([]*Process, n)
			for i := range all {
				all[i] = start(b, s, Spec{Run: "f" + strconv.Itoa(i), Dir: dir, Argv: sh("sleep 300 & sleep 300"), Wall: Wall{Profile: Worker}})
			}
			each := func(do func(p *Process) error) time.Duration {
				began := time.Now()
				var wg sync.WaitGroup
				for _, p := range all {
					wg.Go(func() {
						if err := do(p); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
				return time.Since(began)
			}
			var freeze, thaw time.Duration
			for b.Loop() {
				freeze += each(func(p *Process) error { return p.Pause(b.Context()) })
				thaw += each(func(p *Process) error { return p.Resume(b.Context()) })
			}
			b.ReportMetric(float64(freeze.Milliseconds())/float64(b.N), "ms-freeze")
			b.ReportMetric(float64(thaw.Milliseconds())/float64(b.N), "ms-thaw")
		})
	}
}
