package cell

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Descriptors of an init, beside the three of its command.
const (
	controlFile = 3   // messages to and from the engine
	beatFile    = 4   // the page in which the engine shows that it lives
	orderFile   = 200 // a sealed file with the order, past what the runtime opens
	firstFile   = 201 // and from here on what the order names
)

// maxFiles bounds what comes with an order: the most that Linux passes at once.
const maxFiles = 253

// order is what an init makes of itself.
type order struct {
	Path string
	Argv []string
	Env  []string
	Dir  string

	Profile Profile
	Spaces  bool  // it is the first process of a PID name space
	User    *User // that the command runs as; nil for the init's own
	Limits  Limits
	Places  []place // the file system, nil for what is there
	Write   []string
	Read    []string      // without Places: all that Landlock lets it see
	Network bool          // it has a network name space of its own
	Ways    bool          // with the proxies' ports
	Ports   []int         // and these
	Cgroup  int           // descriptor of the parent's cgroup.procs; 0 is none
	Tty     bool          // the command's three files are a terminal, which is to be its own
	Run     string        // for words
	Keep    *keeping      // nil keeps nothing
	Grace   time.Duration // that it stays when the engine has gone
	// Unscoped has Landlock hold no signals, as before it could.
	Unscoped bool

	pins  []pinned // that hold when the command starts
	lacks []string // layers that the plan goes without
}

// message is what an init tells the engine.
type message struct {
	Kind string // one of the below
	// PID of the command's first process as the init sees it, with saidStarted.
	PID int `json:",omitzero"`
	// Status is a wait status, with saidExit.
	Status syscall.WaitStatus `json:",omitzero"`
	// Errno and Error say why, with saidFailed, and with saidPaused that it is not.
	Errno syscall.Errno `json:",omitzero"`
	Error string        `json:",omitzero"`
	// NoWall says, with saidFailed, that it was not the command's fault.
	NoWall bool `json:",omitzero"`
	// Missing are the layers that could not be had, with saidStarted.
	Missing []string `json:",omitzero"`
	// Deed, Call and Program say with saidRefused what was, by which call of the
	// kernel and who tried it; PID is that process as the init sees it.
	Deed    string `json:",omitempty"`
	Call    string `json:",omitempty"`
	Program string `json:",omitempty"`
	// Port is where a connection arrived, with saidConn; it comes along.
	Port int `json:",omitzero"`
}

const (
	saidStarted = "started"
	saidFailed  = "failed"
	saidApart   = "apart" // from the run's cgroup
	saidExit    = "exit"
	saidPaused  = "paused"
	saidResumed = "resumed"
	saidConn    = "conn"
	saidRefused = "refused"
)

// wish is what the engine wants of an init.
type wish struct {
	Kind   string
	Signal syscall.Signal `json:",omitzero"`
	Task   string         `json:",omitempty"` // with wishServe: the process is at work on it
	On     bool           `json:",omitzero"`  // or no more
}

const (
	wishGroup  = "group"  // send a signal to the first process's group
	wishAll    = "all"    // send one to each process
	wishPause  = "pause"  // stand still, then say so
	wishResume = "resume" // go on, then say so
	wishEnd    = "end"    // kill all, then end
	wishServe  = "serve"  // know what the process is at work on
)

const maxMessage = 4096

// send writes one message, with a descriptor unless that is negative.
func send(fd int, m any, along int) error { return sendBy(fd, m, along, 0) }

// sendNow writes one message, or fails when it would have to wait.
func sendNow(fd int, m any) error { return sendBy(fd, m, -1, unix.MSG_DONTWAIT) }

func sendBy(fd int, m any, along, flags int) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	var rights []byte
	if along >= 0 {
		rights = unix.UnixRights(along)
	}
	for {
		err := unix.Sendmsg(fd, data, rights, nil, unix.MSG_NOSIGNAL|flags)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// receive reads one message and the descriptor that came along, -1 for none.
// io.EOF says that the other side has gone.
func receive(fd int, m any) (along int, err error) {
	buf, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4))
	var n, oobn int
	for {
		n, oobn, _, _, err = unix.Recvmsg(fd, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return -1, err
	}
	along = descriptor(oob[:oobn])
	if n == 0 {
		return along, io.EOF
	}
	return along, json.Unmarshal(buf[:n], m)
}

// descriptor is the one that came with a message, -1 for none.
func descriptor(oob []byte) int {
	if parts, err := unix.ParseSocketControlMessage(oob); err == nil && len(parts) == 1 {
		if fds, err := unix.ParseUnixRights(&parts[0]); err == nil && len(fds) == 1 {
			return fds[0]
		}
	}
	return -1
}

// sendFiles gives an init the name of its run and the files of its order.
func sendFiles(conn *net.UnixConn, run string, all files) (err error) {
	if len(all) > maxFiles {
		return fmt.Errorf("an order with %d files, at most %d can be passed", len(all), maxFiles)
	}
	fds := make([]int, len(all))
	for i, f := range all {
		if i < 3 {
			fds[i] = int(f.Fd()) // the command waits in its reads and writes
		} else if fds[i], err = number(f); err != nil {
			return fmt.Errorf("pass a file of an order: %w", err)
		}
	}
	_, _, err = conn.WriteMsgUnix([]byte(run), unix.UnixRights(fds...), nil)
	runtime.KeepAlive(all)
	return err
}

// number is the descriptor of a file, which stays as it is: Fd would have our
// own reads of a pipe wait in the kernel.
func number(f *os.File) (fd int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return -1, err
	}
	err = raw.Control(func(n uintptr) { fd = int(n) })
	return fd, err
}

// receiveFiles waits for that, and puts the files in their places: the three of
// the command, then the order and what it names. io.EOF says that the engine
// has no use for this process any more.
func receiveFiles() (run string, err error) {
	buf, oob := make([]byte, maxMessage), make([]byte, unix.CmsgSpace(4*maxFiles))
	var n, oobn int
	for {
		n, oobn, _, _, err = unix.Recvmsg(controlFile, buf, oob, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return "", fmt.Errorf("wait for an order: %w", err)
	}
	if n == 0 {
		return "", io.EOF
	}
	parts, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(parts) != 1 {
		return "", fmt.Errorf("an order came with %d sets of files, want one: %w", len(parts), err)
	}
	fds, err := unix.ParseUnixRights(&parts[0])
	if err != nil {
		return "", fmt.Errorf("take the files of an order: %w", err)
	}
	for i, fd := range fds {
		to, flags := i, 0
		if i > 2 {
			to, flags = orderFile+i-3, unix.O_CLOEXEC
		}
		if err := unix.Dup3(fd, to, flags); err != nil {
			return "", fmt.Errorf("put a file of an order in its place: %w", err)
		}
		_ = unix.Close(fd)
	}
	return string(buf[:n]), nil
}

// sealed puts data into a file in memory that nobody can change.
func sealed(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make the order: %w", err)
	}
	f := os.NewFile(uintptr(fd), "order")
	if _, err := f.Write(data); err != nil {
		f.Close()
		return nil, fmt.Errorf("write the order: %w", err)
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_WRITE); err != nil {
		f.Close()
		return nil, fmt.Errorf("seal the order: %w", err)
	}
	return f, nil
}

// ordered reads the order.
func ordered() (o order, err error) {
	f := os.NewFile(orderFile, "order")
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return o, fmt.Errorf("find the order: %w", err)
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return o, fmt.Errorf("read the order: %w", err)
	}
	return o, json.Unmarshal(data, &o)
}
