package serve

import (
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
