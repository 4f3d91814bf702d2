package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
	"swarmdeck/ui/serve/link"
)

// abroad is a link of 300 ms round trip and 32 kB/s.
var abroad = link.Shape{Delay: 150 * time.Millisecond, Rate: 32_000}

// far is an operator at the other end of a link, with the system's ssh.
type far struct {
	*daemon
	link *link.Link
	key  string // file
}

func (d *daemon) far(shape link.Shape) *far {
	d.t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		d.t.Skip("ssh is missing")
	}
	k := expect.Of(link.New(d.addr, shape))(d.t)
	d.t.Cleanup(k.Close)
	f := &far{daemon: d, link: k, key: keyFile(d.t, 0)}
	_, line := pair(d.t, 0)
	d.ok("operator", "set", "bob", "--role", "operator", "--key", line)
	return f
}

// attach opens the cockpit over the link.
func (f *far) attach(w, h int) *seat {
	f.t.Helper()
	host, port, _ := strings.Cut(f.link.Addr(), ":")
	return f.atTerminal().sit(w, h, "attach", "bob@"+host, "--port", port, "--", "-q", "-i", f.key, "-o", "IdentitiesOnly=yes",
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null")
}

// takes waits until the screen matches and tells how long that took.
func (s *seat) takes(pattern string) time.Duration {
	s.t.Helper()
	start := time.Now()
	s.see(pattern)
	return time.Since(start)
}

func TestACockpitIsUsableOverASlowLink(t *testing.T) {
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	f := d.far(abroad)
	signer, line := pair(t, 1)
	u.ok("operator", "set", "ann", "--role", "operator", "--key", line)
	ann := d.enter("ann", signer)
	for i := range 70 { // pages of tasks: each leaf through them is a screen of other text
		code, _, stderr := ann.run(fmt.Sprintf(`task dispatch --kind exec.run --input '{"argv":["echo","%s"]}'`, strings.Repeat(fmt.Sprint(i*7919%1000, " "), 30)))
		expect.Must(t, code == 0, "%v", stderr)
	}
	s := f.attach(200, 50)
	s.see(`fleet`)
	s.press("2")
	s.see(`tasks`)
	s.see(`exec\.run`)

	// At rest a key is back after little more than the round trip.
	s.press(":")
	s.see(`^ *:`)
	var echoes []time.Duration
	for i := range 4 {
		s.press("zqjx"[i : i+1])
		echoes = append(echoes, s.takes(":"+"zqjx"[:i+1]))
	}
	slices.Sort(echoes)
	t.Logf("a key is echoed after %v", echoes)
	expect.True(t, echoes[0] >= 2*abroad.Delay, "keys are echoed after %v", echoes)
	s.press(esc)
	s.gone(`:zqjx`)

	// Leafing on and on makes more than the link takes: what it can't is never
	// sent, so the newest is not behind it.
	for i := range 40 {
		came := f.link.Down()
		s.press([]string{"\x06", "\x02"}[i/2%2])
		s.until("more comes", func() bool { return f.link.Down() > came })
	}
	before := f.link.Down()
	s.press(":zqlast")
	took, came := s.takes(`:zqlast`), f.link.Down()-before
	t.Logf("after leafing it took %v, and %d bytes", took, came)
	expect.True(t, came <= 40_000, "%d bytes came before the newest frame: old ones were sent", came)
	s.press(esc)
	s.gone(`:zqlast`)
	expect.Is(t, s.leaves(), 0, "exit")
}

func TestAConnectionThatIsCutIsMadeAgain(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	f := u.daemon().far(abroad)
	dir := t.TempDir()
	u.ok("agent", "create", "ada", "--project", "p", "--dir", dir, "--", "cat") // who is far names where agents work
	s := f.attach(80, 24)
	s.see(`fleet`)
	s.press(`:task dispatch --kind exec.run --input '{"argv":["sh","-c","until test -e go; do sleep 0.1; done"],"dir":"` + dir + `"}'` + enter)
	s.press("2")
	s.see(`● running`) // the help of a command speaks of running ones, too
	f.link.Cut()
	s.see(`is lost; the work there goes on`)
	out := s.output()
	expect.True(t, strings.LastIndex(out, "\x1b[?1049l") >= strings.LastIndex(out, "\x1b[?1049h"), "the alternate screen is left on")
	now := expect.Of(unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS))(t)
	expect.Is(t, now.Lflag&(unix.ICANON|unix.ECHO|unix.ISIG), unix.ICANON|unix.ECHO|unix.ISIG, "the line is left raw", now)
	s.see(`fleet`) // by itself
	s.press("2")
	expect.No(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	s.see(`✓ succeeded`)
	f.link.Cut()
	s.see(`is lost`)
	s.press(ctrlC)
	expect.Is(t, s.ends(), 130, "exit")
	u.ok("audit", "verify")
}
