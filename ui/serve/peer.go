package serve

import (
	"cmp"
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
	fd = -1
	err = atSocket(c, func(sock int) (err error) {
		pid, fd, err = processAt(sock)
		return err
	})
	return pid, fd, err
}

// atSocket asks the system about the socket of a connection.
func atSocket(c *net.UnixConn, ask func(sock int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(sock uintptr) { failed = ask(int(sock)) })
	return cmp.Or(err, failed)
}
