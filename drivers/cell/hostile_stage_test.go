package cell

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/expect"

	"golang.org/x/sys/unix"
)

// world is all that an attacker could wish to know of the machine.
type world struct {
	Dir      string         // its own
	Home     string         // of the engine's user
	Data     string         // the engine's directory
	Socket   string         // the engine's
	Abstract string         // name of a socket of the engine's
	Foreign  string         // a directory of another agent
	Kept     string         // its home
	Scratch  string         // of the machine: where the engine's temporary files are
	Outside  string         // a file that is nobody's secret and not the run's to change
	Engine   int            // pid
	Address  uint64         // of a secret in the engine's memory
	Victim   int            // pid of a process of the engine's user that is in no cell
	Started  map[int]uint64 // of both, by pid: when
	Host     string         // an address of the machine
	TCP, UDP int            // ports of it
	Listen   int            // a port at which nobody listens there
	Segment  int            // of SysV shared memory
	Queue    string         // a POSIX message queue
	Handle   []byte         // of a secret file, for open_by_handle_at
	Kind     int32          // of the handle
	Sockets  []string
	Devices  []uint64 // of the machine's file systems
	// Terminals is the device of the machine's.
	Terminals uint64
	Mark      string // of what is to outlive the run
	Spaces    bool
	Ways      bool // it has the way out
	Tty       bool // it has a terminal
}

// stage builds a world with a victim of every kind.
func stage(t *testing.T) (w *world, hide []string) {
	t.Helper()
	root := t.TempDir()
	celltest.Passable(t, root) // so that not the rights of its files hold it
	token := func() string { return "TOPSECRET-" + hex.EncodeToString(random(12)) + "\n" }
	w = &world{Mark: "escapee" + strconv.Itoa(os.Getpid()) + strings.ReplaceAll(t.Name(), "/", "-"), Engine: os.Getpid()}
	for _, d := range []struct {
		at   *string
		name string
	}{{&w.Dir, "work"}, {&w.Home, "home"}, {&w.Data, "data"}, {&w.Foreign, "foreign"}, {&w.Kept, "kept"}, {&w.Scratch, "scratch"}} {
		*d.at = filepath.Join(root, d.name)
		expect.No(t, os.Mkdir(*d.at, 0o777))
		_ = os.Chmod(*d.at, 0o777)
	}
	put := func(path, text string) string {
		_ = os.MkdirAll(filepath.Dir(path), 0o777)
		_ = os.Chmod(filepath.Dir(path), 0o777)
		expect.No(t, os.WriteFile(path, []byte(text), 0o666))
		_ = os.Chmod(path, 0o666)
		return path
	}
	for _, name := range []string{
		"data/swarmdeck.db", "data/swarmdeck.db.key", "data/spill/1", "home/.ssh/id_ed25519", "home/.aws/credentials", "home/.config/gh/hosts.yml",
		"home/.bash_history", "home/notes", "foreign/secret", "foreign/.git/config", "kept/secret", "scratch/secret",
	} {
		put(filepath.Join(root, name), token())
	}
	w.Outside = put(filepath.Join(root, "outside"), "untouched")
	t.Setenv("HOME", w.Home)
	t.Setenv("VICTIM", strings.TrimSpace(token()))

	memory := []byte(token())
	t.Cleanup(func() { runtime.KeepAlive(memory) })
	pin := new(runtime.Pinner)
	pin.Pin(&memory[0])
	t.Cleanup(pin.Unpin)
	w.Address = uint64(uintptr(unsafe.Pointer(&memory[0])))

	t.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
	var terminals unix.Stat_t
	if unix.Stat("/dev/pts", &terminals) == nil {
		w.Terminals = terminals.Dev
	}
	victim := exec.Command("sleep", "300")
	victim.Args[0] = strings.TrimSpace(token())
	expect.No(t, victim.Start())
	w.Victim = victim.Process.Pid
	engine, _ := look(w.Engine)
	other, _ := look(w.Victim)
	w.Started = map[int]uint64{w.Engine: engine.Start, w.Victim: other.Start}
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	_ = victim.Process.Signal(unix.SIGSTOP) // so that it is seen when a signal comes to it
	expect.Await(t, "the victim stands still", func() bool { p, ok := look(w.Victim); return ok && p.Stopped() })

	w.Socket, w.Abstract = filepath.Join(w.Data, "s"), "@engine"+w.Mark
	for _, path := range []string{w.Socket, filepath.Join(w.Home, "agent.1"), filepath.Join(w.Scratch, "docker.sock"), filepath.Join(w.Foreign, "s"), w.Abstract} {
		expect.Must(t, len(path) <= 100, "%s is too long for a socket", path)
		host(t, w, "unix", path)
		if path != w.Abstract {
			w.Sockets = append(w.Sockets, path)
		}
	}
	w.Host = address()
	w.TCP = host(t, w, "tcp", ":0")
	free := expect.Of(net.Listen("tcp", ":0"))(t)
	w.Listen = free.Addr().(*net.TCPAddr).Port
	free.Close()
	udp := expect.Of(net.ListenPacket("udp", ":0"))(t)
	t.Cleanup(func() { udp.Close() })
	w.UDP = udp.LocalAddr().(*net.UDPAddr).Port
	go func() {
		buf := make([]byte, 64)
		if n, from, err := udp.ReadFrom(buf); err == nil {
			t.Errorf("reach out: %q came by UDP from %s", buf[:n], from)
		}
	}()

	id := expect.Of(unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o666|unix.IPC_CREAT))(t)
	t.Cleanup(func() { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) })
	mem := expect.Of(unix.SysvShmAttach(id, 0, 0))(t)
	copy(mem, token())
	t.Cleanup(func() { _ = unix.SysvShmDetach(mem) })
	w.Segment = id
	w.Queue = strings.ToLower(w.Mark[:20])
	if q, err := queue(w.Queue, unix.O_RDWR|unix.O_CREAT); err == nil {
		text := []byte(token())
		_, _, _ = unix.Syscall6(unix.SYS_MQ_TIMEDSEND, q, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)), 0, 0, 0)
		t.Cleanup(func() {
			name := append([]byte(w.Queue), 0)
			_, _, _ = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&name[0])), 0, 0)
			_ = unix.Close(int(q))
		})
	}
	if h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, filepath.Join(w.Scratch, "secret"), 0); err == nil {
		w.Handle, w.Kind = h.Bytes(), h.Type()
	}
	for _, path := range []string{"/", "/etc", "/usr", "/opt", "/var", "/tmp", root} {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil {
			w.Devices = append(w.Devices, st.Dev)
		}
	}
	return w, []string{filepath.Join(w.Data, "swarmdeck.db*"), filepath.Join(w.Data, "spill"), w.Socket, w.Foreign}
}

// host listens as something that a run must not reach.
func host(t *testing.T, w *world, network, address string) (port int) {
	t.Helper()
	l := expect.Of(net.Listen(network, address))(t)
	t.Cleanup(func() { l.Close() })
	if network == "unix" {
		_ = os.Chmod(address, 0o777)
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conn, ok := c.(*net.UnixConn)
			expect.True(t, ok && ours(conn), "reach out: somebody came to %s %s", network, address)
			c.Close()
		}
	}()
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		return a.Port
	}
	return 0
}

// ours reports whether a connection came from this very process.
func ours(conn *net.UnixConn) (own bool) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		own = err == nil && int(cred.Pid) == os.Getpid()
	})
	return own
}

// address is one of this machine that is not its loopback, "" for none.
func address() string {
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	return ""
}

// queue opens a POSIX message queue.
func queue(name string, flags int) (uintptr, error) {
	path := append([]byte(name), 0)
	q, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&path[0])), uintptr(flags), 0o666, 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return q, nil
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}
