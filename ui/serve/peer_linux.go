package serve

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// peerOf is the process at the other end of a socket, 0 for one of another PID
// name space, and its user.
func peerOf(sock int) (pid, uid int, err error) {
	cred, err := unix.GetsockoptUcred(sock, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, fmt.Errorf("ask for the peer of the socket: %w", err)
	}
	return int(cred.Pid), int(cred.Uid), nil
}

// processAt is the process at the other end of a socket, with a pidfd of it.
func processAt(sock int) (pid, fd int, err error) {
	pid, _, err = peerOf(sock)
	if err != nil || pid == 0 {
		return 0, -1, err
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
