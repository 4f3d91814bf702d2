package cell

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ports of a cell's own loopback that lead out: to Options.Way.
const (
	PortHTTP  = 3128 // CONNECT, and requests with whole addresses
	PortSOCKS = 1080 // version 5
)

// Conn is a connection out of a cell.
type Conn struct {
	net.Conn
	Port int // PortHTTP or PortSOCKS
	of   *Process
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
	if port == PortHTTP || port == PortSOCKS {
		go p.sup.opt.Way(Conn{Conn: conn, Port: port, of: p})
		return
	}
	go reach(conn, port)
}

// reach joins a connection of a cell with a port of the engine's loopback.
func reach(conn net.Conn, port int) {
	defer conn.Close()
	to, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return
	}
	defer to.Close()
	var both sync.WaitGroup
	join := func(dst, src net.Conn) {
		_, _ = io.Copy(dst, src)
		if half, ok := dst.(*net.TCPConn); ok {
			_ = half.CloseWrite()
		}
	}
	both.Go(func() { join(to, conn) })
	both.Go(func() { join(conn, to) })
	both.Wait()
}
