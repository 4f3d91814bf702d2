package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
)

// space is a network name space of its own behind a cable, whose near end is here.
type space struct {
	t             testing.TB
	name, address string
	cable, far    string // the ends of the cable
}

// newSpace makes one that ends with the test. Its address is given as ADDRESS/BITS.
func newSpace(t testing.TB, tag, address string) (*space, error) {
	s := &space{t: t, name: "swdk-" + tag, cable: "swn" + tag, far: "swf" + tag}
	s.address, _, _ = strings.Cut(address, "/")
	t.Cleanup(func() {
		_ = exec.Command("ip", "link", "del", s.cable).Run()
		_ = exec.Command("ip", "netns", "del", s.name).Run()
	})
	return s, ip(
		"netns add "+s.name, "link add "+s.cable+" type veth peer name "+s.far+" netns "+s.name, "link set "+s.cable+" up",
		"-n "+s.name+" link set lo up", "-n "+s.name+" addr add "+address+" dev "+s.far, "-n "+s.name+" link set "+s.far+" up",
	)
}

// ip runs commands of the system's ip.
func ip(lines ...string) error {
	for _, line := range lines {
		if out, err := exec.Command("ip", strings.Fields(line)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w %s", line, err, out)
		}
	}
	return nil
}

func (s *space) must(format string, args ...any) {
	s.t.Helper()
	expect.No(s.t, ip(fmt.Sprintf(format, args...)))
}

// enter has the caller's goroutine, and what it starts, be there from now on.
func (s *space) enter() error {
	runtime.LockOSThread() // the thread ends with the goroutine
	f, err := os.Open("/run/netns/" + s.name)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Setns(int(f.Fd()), unix.CLONE_NEWNET)
}

// network joins spaces to a database here, as a switch does.
type network struct {
	t         testing.TB
	bridge    string
	net       string // 10.a.b.
	tag       string
	databases [2]string // addresses of its servers
	spaces    []*space
}

// newNetwork makes a network of some spaces, or says why there can be none.
func newNetwork(t testing.TB, spaces int) (*network, error) {
	tag := strconv.FormatUint(uint64(os.Getpid()), 36)
	b := os.Getpid() & 0x3fff
	n := &network{t: t, bridge: "swb" + tag, net: fmt.Sprintf("10.%d.%d.", 128+b>>8, b&0xff), tag: tag}
	n.databases = [2]string{n.net + "1", n.net + "2"}
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", n.bridge).Run() })
	err := ip("link add "+n.bridge+" type bridge", "addr add "+n.databases[0]+"/24 dev "+n.bridge, "addr add "+n.databases[1]+"/24 dev "+n.bridge, "link set "+n.bridge+" up")
	for i := 0; i < spaces && err == nil; i++ {
		var s *space
		if s, err = newSpace(t, fmt.Sprint(tag, "l", i), fmt.Sprint(n.net, 11+i, "/24")); err == nil {
			n.spaces = append(n.spaces, s)
			err = ip("link set " + s.cable + " master " + n.bridge)
		}
	}
	return n, err
}

// deafen has what a space sends to the databases go to nobody or, back, what they send to
// it, until heal is called: whoever sends it is told nothing.
func (n *network) deafen(s *space, back bool) (heal func()) {
	const nobody = "lladdr 02:00:00:00:00:01 nud permanent"
	if back {
		s.must("neigh replace %s %s dev %s", s.address, nobody, n.bridge)
		return func() { s.must("neigh del %s dev %s", s.address, n.bridge) }
	}
	for _, to := range n.databases {
		s.must("-n %s neigh replace %s %s dev %s", s.name, to, nobody, s.far)
	}
	return func() {
		for _, to := range n.databases {
			s.must("-n %s neigh del %s dev %s", s.name, to, s.far)
		}
	}
}
