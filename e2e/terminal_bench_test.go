package e2e

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/creack/pty"

	"swarmdeck/expect"
)

// marks are characters that stand nowhere else on a cockpit's screen.
var marks = []string{"√", "∂", "∑", "∏", "Ω", "λ", "ψ", "φ"}

// ready is shown by the program once it reads keys, and has the size of the screen.
const ready = "⊕"

// BenchmarkTerminalKey types into an agent's terminal at a real screen and reports the
// time from a key to the frame with what the program answers, all of it: the record of
// the key, the program in its cell, the emulator, the frame, the bytes on the screen.
// The program is quiet, or floods its terminal below the answer: with a log, or with
// the shortest lines.
func BenchmarkTerminalKey(b *testing.B) {
	if _, err := exec.LookPath("bash"); err != nil {
		b.Skip("bash plays the program, and is not here")
	}
	for _, flood := range []struct{ name, command string }{
		{"quiet", ":"},
		{"log", "yes '2026-11-27 12:00:00 INFO  worker 17 took the part 4711 and goes on with the one behind it in 4.2 ms' &"},
		{"yes", "yes &"},
	} {
		for _, size := range []struct{ w, h int }{{80, 24}, {200, 50}} {
			b.Run(fmt.Sprintf("%s/%dx%d", flood.name, size.w, size.h), func(b *testing.B) {
				u := newUser(b)
				u.ok("agent", "create", "shell", "--project", "demo", "--runtime", "terminal", "--", "bash", "-c",
					`stty raw -echo opost; marks=(`+fmt.Sprint(marks)[1:len(fmt.Sprint(marks))-1]+`); until [ "$(stty size)" != '40 120' ]; do sleep 0.1; done; sleep 0.5; printf '\033[3r\033[1;1H⊕\033[3;1H'; `+flood.command+`
					while IFS= read -rsn1 c; do printf '\0337\033[1;1H%s\0338' ${marks[i++ % 8]}; done`)
				for b.Loop() {
					before := os.Getenv("SWARMDECK_BENCH_BEFORE")
					now := typed(b, u, u.built(), size.w, size.h)
					b.ReportMetric(0, "ns/op")
					b.ReportMetric(now.p50, "ms/key-p50")
					b.ReportMetric(now.p99, "ms/key-p99")
					b.ReportMetric(now.user, "s-user")
					if before != "" {
						was := typed(b, u, before, size.w, size.h)
						b.Logf("before: p50 %.1f ms, p99 %.1f ms, %.1f s user", was.p50, was.p99, was.user)
						b.ReportMetric(now.p50/was.p50, "x-before-p50")
						b.ReportMetric(now.p99/was.p99, "x-before-p99")
					}
				}
			})
		}
	}
}

// echoes are how long keys took, in milliseconds, and the processor time of the
// program meanwhile, in seconds.
type echoes struct{ p50, p99, user float64 }

// typed types 200 keys, and finds out how long they take.
func typed(b *testing.B, u *user, program string, w, h int) echoes {
	const keys = 150
	cmd := exec.Command(program, "agent", "attach", "shell")
	cmd.Dir, cmd.Env = u.home, append(slices.Clone(u.env), "TERM=xterm-256color")
	tty := expect.Of(pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(w), Rows: uint16(h)}))(b)
	seen := make(chan string, 100)
	go func() {
		defer close(seen)
		buf := make([]byte, 64<<10)
		for {
			n, err := tty.Read(buf)
			if bytes.Contains(buf[:n], []byte("\x1b[5n")) {
				_, _ = tty.WriteString("\x1b[0n")
			}
			for _, m := range append([]string{ready}, marks...) {
				if bytes.Contains(buf[:n], []byte(m)) {
					select {
					case seen <- m:
					default: // it is drawn again
					}
				}
			}
			if err != nil {
				return
			}
		}
	}()
	await := func(mark string) {
		end := time.After(20 * time.Second)
		for {
			select {
			case m := <-seen:
				if m == mark {
					return
				}
			case <-end:
				b.Fatalf("%s is not shown", mark)
			}
		}
	}
	var took []time.Duration
	rng := rand.New(rand.NewPCG(1, 1))
	await(ready)
	for i := range keys {
		time.Sleep(time.Duration(60+rng.IntN(60)) * time.Millisecond)
		at := time.Now()
		expect.Of(tty.WriteString("k"))(b)
		await(marks[i%len(marks)])
		took = append(took, time.Since(at))
	}
	if cpu, err := os.ReadFile("/proc/loadavg"); err == nil {
		b.Logf("load %s", bytes.TrimSpace(cpu))
	}
	_, _ = tty.WriteString("\x1d")
	time.Sleep(100 * time.Millisecond)
	_, _ = tty.WriteString("\x03\x03")
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	tty.Close()
	for range seen {
	}
	slices.Sort(took)
	ms := func(i int) float64 { return float64(took[i].Microseconds()) / 1000 }
	return echoes{ms(keys / 2), ms(keys * 99 / 100), cmd.ProcessState.UserTime().Seconds()}
}
