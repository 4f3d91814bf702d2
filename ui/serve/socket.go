package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// SocketPath is where the engine of a data file listens for this user's other
// processes: a private directory of the runtime directory (XDG Base Directory
// Specification), or of the temporary one. The name is short, because a path
// of a socket takes 107 bytes at most.
func SocketPath(getenv func(string) string, instance string) string {
	dir := getenv("XDG_RUNTIME_DIR")
	if filepath.IsAbs(dir) {
		dir = filepath.Join(dir, "swarmdeck")
	} else {
		dir = filepath.Join(os.TempDir(), "swarmdeck-"+strconv.Itoa(os.Getuid()))
	}
	return filepath.Join(dir, instance+".sock")
}

// Listen opens the socket. The caller holds the data file, so a socket that is
// there already is one that a killed process left.
func Listen(path string) (net.Listener, error) {
	l, err := listen(path)
	for range 3 { // another engine that ended took the directory away
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		l, err = listen(path)
	}
	return l, err
}

func listen(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory of the socket: %w", err)
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove the socket of a former engine: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen for other processes: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("close the socket to others: %w", err)
	}
	return ownListener{l, dir}, nil
}

// private refuses a directory that others own or may enter: they could put
// their own socket there.
func private(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return fmt.Errorf("look at %s: %w", dir, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Getuid() || st.Mode&0o077 != 0 {
		return fmt.Errorf("%s has to be a directory that is this user's alone (mode 0700); it has mode %o and belongs to user %d", dir, st.Mode&0o777, st.Uid)
	}
	return nil
}

// ownListener takes connections of processes of this user only.
type ownListener struct {
	*net.UnixListener
	dir string
}

// Close takes the socket away, and its directory when no other is in it.
func (l ownListener) Close() error {
	err := l.UnixListener.Close()
	_ = os.Remove(l.dir)
	return err
}

func (l ownListener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		if peer(c) == nil {
			return c, nil
		}
		_ = c.Close()
	}
}

// peer refuses a connection whose other end is another user's.
func peer(c *net.UnixConn) error {
	return atSocket(c, func(sock int) error {
		_, uid, err := peerOf(sock)
		if err == nil && uid != os.Getuid() {
			err = fmt.Errorf("the other end of the socket belongs to user %d", uid)
		}
		return err
	})
}

// dialPatience bounds how long an engine may take to answer.
const dialPatience = 2 * time.Second

// Dial connects to the engine that listens at path.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	if err := private(filepath.Dir(path)); err != nil {
		return nil, err
	}
	d := net.Dialer{Timeout: dialPatience}
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("reach the engine: %w", err)
	}
	if err := peer(c.(*net.UnixConn)); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("reach the engine: %w", err)
	}
	return c, nil
}
