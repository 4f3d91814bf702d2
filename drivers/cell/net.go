package cell

import (
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"swarmdeck/drivers/cell/ca"

	"golang.org/x/sys/unix"
)

// Ports of a cell's own loopback that lead out: to Options.Way.
const (
	PortHTTP  = 3128 // CONNECT, and requests with whole addresses
	PortSOCKS = 1080 // version 5
)

// HasPorts reports whether a run without these layers of its wall has ports of its own:
// they are of its network, which no other layer gives.
func HasPorts(missing []string) bool { return !slices.Contains(missing, layerSpaces) }

// Conn is a connection out of a cell. Its network is the cell's own, whatever
// its addresses say.
type Conn struct {
	net.Conn
	Port  int    // PortHTTP, PortSOCKS or, for Options.Reach, one of Wall.Reach
	Run   string // as in Spec
	Whose Whose
	// Profile is the cell's.
	Profile Profile
	// Authority is the one that the cell trusts beside the machine's; nil without
	// Wall.Inspect.
	Authority *ca.Authority
	of        *Process
}

// Process is the one that opened the connection, as this process sees it, and
// its name; 0 when it can't be told.
func (c Conn) Process() (pid int, name string) {
	at, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return 0, ""
	}
	inode := socketOf(c.of.init, at.Port, c.Port)
	if inode == "" {
		return 0, ""
	}
	for _, p := range c.of.tree() {
		dir := "/proc/" + strconv.Itoa(p.PID)
		for _, fd := range numbers(dir + "/fd") {
			if to, err := os.Readlink(dir + "/fd/" + strconv.Itoa(fd)); err == nil && to == inode {
				comm, _ := os.ReadFile(dir + "/comm")
				return p.PID, strings.TrimSpace(string(comm))
			}
		}
	}
	return 0, ""
}

// trustFile is where a cell that is looked into has what it trusts.
const trustFile = "/.trust.pem"

// trusting are the variables by which programs are told what to trust.
var trusting = [...]string{
	"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CARGO_HTTP_CAINFO", "CURL_CA_BUNDLE",
	"AWS_CA_BUNDLE", "DENO_CERT",
}

// trust gives the cell an authority of its own.
func (p *Process) trust(o *order, env map[string]string) (err error) {
	if p.ca, err = ca.New(); err != nil {
		return err
	}
	bundle := string(p.ca.Bundle())
	o.Places = append(o.Places, place{Kind: text, To: trustFile, From: bundle, Must: true})
	if store := ca.Store(); store != "" { // of programs that heed no variable
		o.Places = append(o.Places, place{Kind: text, To: store, From: bundle})
	}
	for _, name := range trusting {
		if _, given := env[name]; !given {
			env[name] = trustFile
		}
	}
	return nil
}

// socketOf names the socket of a connection between two ports of a process's
// loopback, as the links to it do: "socket:[4711]".
func socketOf(pid, from, to int) string {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/net/tcp")
	if err != nil {
		return ""
	}
	ends := [2]string{fmt.Sprintf(":%04X", from), fmt.Sprintf(":%04X", to)}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if len(f) > 9 && strings.HasSuffix(f[1], ends[0]) && strings.HasSuffix(f[2], ends[1]) {
			return "socket:[" + f[9] + "]"
		}
	}
	return ""
}

// network gives the cell its loopback, and passes on to the engine who comes
// to one of its ports: the connection itself, so that no byte is copied here.
func (i *initial) network() error {
	if err := loopbackUp(); err != nil {
		return err
	}
	ports := i.order.Ports
	if i.order.Ways {
		ports = append(ports, PortHTTP, PortSOCKS)
	}
	for _, port := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return fmt.Errorf("open the cell's port %d: %w", port, err)
		}
		go i.pass(l, port)
	}
	return nil
}

func (i *initial) pass(l net.Listener, port int) {
	for {
		conn, err := l.Accept()
		if err != nil {
			continue // too many open: some of them will end
		}
		if f, err := conn.(*net.TCPConn).File(); err == nil {
			_ = send(controlFile, message{Kind: saidConn, Port: port}, int(f.Fd()))
			f.Close()
		}
		conn.Close()
	}
}

// loopbackUp brings the loopback of a new name space up.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bring the loopback up: %w", err)
	}
	defer unix.Close(fd)
	var req struct {
		name  [unix.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}
	copy(req.name[:], "lo")
	req.flags = unix.IFF_UP | unix.IFF_RUNNING
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return fmt.Errorf("bring the loopback up: %w", errno)
	}
	return nil
}

// arrive takes a connection that came to a port of the cell.
func (p *Process) arrive(fd, port int) {
	if fd < 0 {
		return
	}
	f := os.NewFile(uintptr(fd), "connection")
	conn, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return
	}
	c := Conn{Conn: conn, Port: port, Run: p.whose.Name, Whose: p.work, Profile: p.wall.Profile, Authority: p.ca, of: p}
	switch {
	case port == PortHTTP || port == PortSOCKS:
		p.ways.Go(func() { p.sup.opt.Way(c) })
	case p.sup.opt.Reach != nil:
		p.ways.Go(func() { p.sup.opt.Reach(c) })
	default:
		go Join(conn, port)
	}
}

// Join carries a connection of a cell to a port of this machine's loopback, and closes
// it when that is over.
func Join(conn net.Conn, port int) {
	defer conn.Close()
	to, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return
	}
	defer to.Close()
	var both sync.WaitGroup
	join := func(dst, src net.Conn) {
		_, _ = io.Copy(dst, src)
		if half, ok := dst.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		}
	}
	both.Go(func() { join(to, conn) })
	both.Go(func() { join(conn, to) })
	both.Wait()
}
