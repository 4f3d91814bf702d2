// Package hold is the keeper of an engine's runs on another host: a process that
// goes on there while the link is away, for the length of a lease, and ends all
// that it holds when that is over. The engine's end is package host.
//
// Two processes of this program are there. One is what ssh starts: it hands on
// bytes between its standard streams and the keeper's socket. The other is the
// keeper, which nobody's link ends.
package hold

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Word as the first argument makes this program one of the two: Word hold ID
// DIGEST, or Word link ID.
const Word = "-keeper"

// Files below the keeper's directory, where it is while it runs.
const (
	socketName = "socket"
	lockName   = "lock"
	homesName  = "agents" // of agents: NAME/home, NAME/work
	treesName  = "trees"  // of agents: package tree
	spoolName  = "output"
	pinsName   = "files" // that commands are bound to
)

// patience is how long a link waits for the keeper to begin.
const patience = 10 * time.Second

// Entered runs what its arguments say, if they are for this package.
func Entered(args []string) (code int, is bool) {
	if len(args) < 4 || args[1] != Word {
		return 0, false
	}
	var err error
	switch {
	case args[2] == "hold" && len(args) == 5:
		err = hold(args[3], args[4])
	case args[2] == "link" && len(args) == 4:
		if err = link(args[3], os.Stdin, os.Stdout); err != nil {
			fmt.Printf("\n%s error %v\n", Mark(args[3]), err)
		}
	default:
		return 2, true
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "swarmdeck: keeper: %v\n", err)
		return 1, true
	}
	return 0, true
}

// Mark begins the lines that are said before the link is one, so that what else
// a host says when somebody comes is passed over.
func Mark(id string) string { return "swarmdeck-" + id }

// link hands bytes on between the keeper, whose directory this process is in, and
// two files, until either side ends.
func link(id string, in io.Reader, out io.Writer) error {
	conn, err := call()
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(out, "%s link\n", Mark(id)); err != nil {
		return err
	}
	ends := make(chan error, 2)
	go func() {
		_, err := io.Copy(conn, in)
		ends <- err
	}()
	go func() {
		_, err := io.Copy(out, conn)
		ends <- err
	}()
	return <-ends
}

// call reaches the keeper, which may be about to begin.
func call() (net.Conn, error) {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("unix", socketName)
		if err == nil {
			return conn, nil
		}
		if time.Since(began) > patience {
			said, _ := os.ReadFile("log")
			return nil, fmt.Errorf("the keeper does not begin: %w %s", err, said[max(0, len(said)-500):])
		}
	}
}

// lock is held as long as a keeper lives; nil says that another one does.
func lock() (*os.File, error) {
	f, err := os.OpenFile(lockName, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	// A keeper that is about to end still holds it.
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Since(began) > patience {
			f.Close()
			return nil, err
		}
		if conn, err := net.Dial("unix", socketName); err == nil { // it takes links
			conn.Close()
			f.Close()
			return nil, nil
		}
	}
}
