package e2e

import (
	"fmt"
	"io"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"swarmdeck/expect"
)

// BenchmarkOperators has operators open the cockpit of the real daemon over
// SSH, each with their own key, and reports what one costs it: anonymous memory
// and processor time while there is nothing to show.
func BenchmarkOperators(b *testing.B) {
	for _, n := range []int{1, 10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				operators(b, n)
			}
		})
	}
}

func operators(b *testing.B, n int) {
	u := newUser(b)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	signers := make([]ssh.Signer, n)
	for i := range n {
		var line string
		signers[i], line = pair(b, byte(i))
		u.ok("operator", "set", fmt.Sprint("op", i), "--role", "operator", "--key", line)
	}
	first, line := pair(b, 200)
	u.ok("operator", "set", "first", "--role", "operator", "--key", line)
	show(b, d.enter("first", first)) // what is made once is made
	time.Sleep(2 * time.Second)
	before := d.memory()
	for i := range n {
		show(b, d.enter("any", signers[i]))
	}
	time.Sleep(2 * time.Second)
	spent := ticks(b, d.cmd.Process.Pid)
	const watch = 5 * time.Second
	time.Sleep(watch)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric((d.memory()-before)/float64(n)*1024, "KB/operator")
	b.ReportMetric(float64(ticks(b, d.cmd.Process.Pid)-spent)/watch.Seconds()/float64(n+1), "idle-%-of-a-core/operator")
}

// show opens a cockpit of 120x40 and reads what it draws.
func show(b *testing.B, g *guest) {
	s := expect.Of(g.client.NewSession())(b)
	expect.No(b, s.RequestPty("xterm-256color", 40, 120, nil))
	out := expect.Of(s.StdoutPipe())(b)
	expect.No(b, s.Shell())
	expect.Of(io.ReadFull(out, make([]byte, 2000)))(b)
	go func() { _, _ = io.Copy(io.Discard, out) }()
}
