package e2e

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/expect"
)

// files is how many the daemon has open.
func (d *daemon) files() int {
	d.t.Helper()
	open := expect.Of(os.ReadDir(filepath.Join("/proc", fmt.Sprint(d.cmd.Process.Pid), "fd")))(d.t)
	return len(open)
}

// memory is what the daemon has allocated, in MB.
func (d *daemon) memory() float64 {
	d.t.Helper()
	status := expect.Of(os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid)))(d.t)
	_, rest, _ := strings.Cut(string(status), "RssAnon:")
	kb := expect.Of(strconv.ParseFloat(strings.Fields(rest)[0], 64))(d.t)
	return kb / 1024
}

// knock connects from an address of this machine.
func (d *daemon) knock(from string) (net.Conn, error) {
	n := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: 5 * time.Second}
	return n.Dial("tcp", d.addr)
}

func TestStrangersCostLittleAndAreAudited(t *testing.T) {
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	signer, line := pair(t, 1)
	u.ok("operator", "set", "bob", "--role", "viewer", "--key", line)
	d.enter("bob", signer).run("task list")
	files, memory := d.files(), d.memory()

	var mu sync.Mutex
	var conns []net.Conn
	var all sync.WaitGroup
	for i := range 1000 {
		all.Go(func() {
			conn, err := d.knock(fmt.Sprintf("127.0.1.%d", 1+i%20))
			if err != nil {
				return
			}
			switch i % 4 {
			case 0:
				_, _ = conn.Write([]byte("SSH-2.0-x\r\n\xff\xff\xff\xff garbage"))
			case 1:
				_, _ = conn.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n\x00"), 1000))
			case 2:
				_, _ = conn.Write([]byte("SSH-2.0-x\r\n")) // and never goes on
			}
			mu.Lock()
			defer mu.Unlock()
			conns = append(conns, conn)
		})
	}
	all.Wait()
	// Those that are refused hold a file until their turn to be closed comes.
	expect.Await(t, "end of those beyond the most", func() bool { return d.files() <= files+200 })
	mb := d.memory()
	expect.True(t, mb <= memory+60 || celltest.Race, "%.0f MB with 1,000 connections; %.0f before", mb, memory)
	for _, c := range conns {
		c.Close()
	}
	stranger, _ := pair(t, 7)
	for range 5 {
		if conn, err := d.knock("127.0.0.3"); err == nil {
			if _, _, _, err := ssh.NewClientConn(conn, d.addr, &ssh.ClientConfig{
				User: "bob", Auth: []ssh.AuthMethod{ssh.PublicKeys(stranger)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
			}); err == nil {
				t.Error("a stranger was let in")
			}
			conn.Close()
		}
	}
	expect.Await(t, "return of the files", func() bool { return d.files() <= files+1 })
	code, _, stderr := d.enter("bob", signer).run("task list")
	expect.True(t, code == 0, "afterwards: exit %d %s", code, stderr)
	told := func() string { return u.ok("audit", "list", "--kind", "door.refused", "-o", "json") }
	expect.Await(t, "word of them in the log", func() bool { return strings.Contains(told(), `"no_ssh"`) })
	out := told()
	expect.True(t, strings.Count(out, "\n") <= 2, "they fill the log:\n%s", out)
	u.ok("audit", "verify")
}

func TestAHostileOperatorIsBoundedAndLeavesNothing(t *testing.T) {
	places, conns := 20, 3
	if celltest.Race { // the detector takes ten times the memory
		places, conns = 3, 1
	}
	u := newUser(t)
	u.env = append(u.env, "GOGC=25") // it is about what is held, not about what waits to be collected
	u.ok("tenant", "create", "t_acme")
	d := u.daemon("serve", "--ssh", "127.0.0.1:0", "--max-sessions-per-key", strconv.Itoa(places))
	signer, line := pair(t, 1)
	u.ok("operator", "set", "bob", "--role", "viewer", "--key", line)
	d.enter("bob", signer).run("task list")
	files, memory := d.files(), d.memory()

	g := d.enter("bob", signer)
	for _, bad := range []string{"no such command", "'open", "\x00\xff", strings.Repeat("x ", 100_000), "task list " + strings.Repeat("y", 200_000), "-h; rm -rf /"} {
		code, out, stderr := g.run(bad)
		expect.True(t, code != 0 && len(out)+len(stderr) <= 64<<10, "%.20q: exit %d and %d bytes", bad, code, len(out)+len(stderr))
	}

	// As many screens as there are places, each as large as can be said.
	var screens []*ssh.Session
	refused := 0
	for range conns {
		c := d.enter("bob", signer)
		for i := range 12 {
			s, err := c.client.NewSession()
			if err != nil {
				expect.True(t, i >= 10 && strings.Contains(err.Error(), "too many sessions in one connection"), "session %d: %v", i, err)
				continue
			}
			var told bytes.Buffer
			s.Stderr = &told
			size := [][2]int{{1 << 30, 1 << 30}, {0, 0}, {1 << 30, 1}}[i%3]
			expect.No(t, s.RequestPty("xterm", size[0], size[1], nil))
			out := expect.Of(s.StdoutPipe())(t)
			expect.No(t, s.Shell())
			if n, err := out.Read(make([]byte, 1)); n == 0 {
				refused++
				s.Wait()
				expect.True(t, strings.Contains(told.String(), fmt.Sprintf("%d sessions open", places)), "%v, %q", err, told.String())
				continue
			}
			for range 20 {
				_ = s.WindowChange(1<<20, 1<<20)
				_ = s.WindowChange(0, 0)
			}
			screens = append(screens, s) // and nobody reads on
		}
	}
	expect.True(t, len(screens) == places && refused >= 10*conns-places, "%d screens, %d refused", len(screens), refused)
	mb := d.memory() - memory
	t.Logf("%.0f MB for %d screens of any size", mb, places)
	expect.True(t, mb <= 1000 || celltest.Race, "%.0f MB", mb)

	conn := expect.Of(d.knock("127.0.0.2"))(t)
	_, _, _, err := ssh.NewClientConn(conn, d.addr, &ssh.ClientConfig{
		User: "bob", Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	expect.No(t, err)
	_, _ = conn.Write(bytes.Repeat([]byte("garbage in the middle"), 10_000))
	conn.Close()

	for _, s := range screens {
		s.Close()
	}
	g.client.Close()
	expect.Await(t, "return of the files", func() bool { return d.files() <= files+3 }) // those connections have no session now
	expect.Await(t, "place for another session", func() bool {                          // the screens end one by one
		code, _, stderr := d.enter("bob", signer).run("task list")
		expect.Must(t, code == 0 || code == 75, "afterwards: exit %d %s", code, stderr)
		return code == 0
	})
}

func TestRefusalsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	signer, line := pair(t, 1)
	u.ok("operator", "set", "bob", "--role", "operator", "--key", line)
	g := d.enter("bob", signer)
	const times = 200
	for range times {
		code, _, stderr := g.run("budget set tenant --tasks 1")
		expect.Must(t, code != 0 && strings.Contains(stderr, "approver"), "exit %d %s", code, stderr)
	}
	list := func() string {
		return u.ok("audit", "list", "--kind", "operator.refused", "--page-size", "100", "-o", "json")
	}
	if out := list(); strings.Count(out, "\n") > 2 || !strings.Contains(out, "approver") { // a minute may have passed
		t.Errorf("the log says:\n%.2000s", out)
	}
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_ = d.cmd.Wait()
	expect.Has(t, list(), fmt.Sprintf(":%d}", times-1), "afterwards it says")
	u.ok("audit", "verify")
}
