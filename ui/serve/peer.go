package serve

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"

	"swarmdeck/engine/operator"
)

// Finder tells where the process with a pid comes from. Alive says whether it is
// still the one that connected.
type Finder func(pid int, alive func() bool) operator.Origin

// find asks where the other end of a connection of the socket comes from. What
// can't be told is no person's.
func (s *Server) find(conn net.Conn) operator.Origin {
	if s.opt.Find == nil {
		return operator.Origin{Kind: operator.Person}
	}
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return operator.Origin{Kind: operator.Unclear, Why: "and this connection does not tell whose it is"}
	}
	pid, fd, err := peerProcess(c)
	switch {
	case err != nil:
		return operator.Origin{Kind: operator.Unclear, PID: pid, Why: "and the process that called can't be told: " + err.Error()}
	case fd < 0: // outside of this PID name space
		return s.opt.Find(0, func() bool { return true })
	}
	defer unix.Close(fd)
	return s.opt.Find(pid, func() bool { return living(fd) })
}

// peerProcess is the process that connected, with a pidfd of it: -1 for a
// process that has no pid here.
func peerProcess(c *net.UnixConn) (pid, fd int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, -1, err
	}
	fd = -1
	var failed error
	if err := raw.Control(func(sock uintptr) { pid, fd, failed = processAt(int(sock)) }); err != nil {
		return 0, -1, err
	}
	return pid, fd, failed
}

func processAt(sock int) (pid, fd int, err error) {
	cred, err := unix.GetsockoptUcred(sock, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, -1, fmt.Errorf("ask for the peer of the socket: %w", err)
	}
	pid = int(cred.Pid)
	if pid == 0 {
		return 0, -1, nil
	}
	fd, err = unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	if err == nil {
		return pid, fd, nil
	}
	if !errors.Is(err, unix.ENOPROTOOPT) {
		return pid, -1, fmt.Errorf("hold the peer of the socket: %w", err)
	}
	// A kernel before 6.5: the pid may have become another's, unless the end
	// that it was given with is still open.
	if fd, err = unix.PidfdOpen(pid, 0); err != nil {
		return pid, -1, fmt.Errorf("hold the peer of the socket: %w", err)
	}
	poll := []unix.PollFd{{Fd: int32(sock), Events: unix.POLLRDHUP}}
	if _, err := unix.Poll(poll, 0); err != nil || poll[0].Revents != 0 {
		unix.Close(fd)
		return pid, -1, errors.New("it has hung up")
	}
	return pid, fd, nil
}

// living says whether the process of a pidfd has not ended.
func living(fd int) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Poll(poll, 0)
	}
	return n == 0 && err == nil
}
