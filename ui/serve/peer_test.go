package serve

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"swarmdeck/engine/operator"
	"swarmdeck/expect"
)

// asCaller makes the test binary a process that connects to a socket, leaves the
// connection to a child of its and ends.
const asCaller = "SERVE_TEST_CALLER"

func TestMain(m *testing.M) {
	path := os.Getenv(asCaller)
	if path == "" {
		os.Exit(m.Run())
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		os.Exit(1)
	}
	file, err := conn.(*net.UnixConn).File()
	if err != nil {
		os.Exit(1)
	}
	successor := exec.Command("cat")
	successor.Stdin, successor.Stdout = os.Stdin, os.Stdout
	successor.ExtraFiles = []*os.File{file}
	if successor.Start() != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func TestAConnectionIsWhosMadeIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l := expect.Of(net.Listen("unix", path))(t)
	defer l.Close()
	find := func(conn net.Conn) (pid int, alive bool) {
		defer conn.Close()
		s := New(Options{Find: func(p int, a func() bool) operator.Origin {
			pid, alive = p, a()
			return operator.Origin{Kind: operator.Person}
		}})
		s.find(conn)
		return pid, alive
	}

	own := expect.Of(net.Dial("unix", path))(t)
	defer own.Close()
	conn := expect.Of(l.Accept())(t)
	if pid, alive := find(conn); pid != os.Getpid() || !alive {
		t.Errorf("pid %d, %v; want %d", pid, alive, os.Getpid())
	}

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asCaller+"="+path)
	read, write, err := os.Pipe() // the successor lasts until its end is closed
	expect.No(t, err)
	defer write.Close()
	cmd.Stdin = read
	expect.No(t, cmd.Run())
	read.Close()
	conn = expect.Of(l.Accept())(t)
	pid, alive := find(conn)
	expect.True(t, !alive && (pid == 0 || pid == cmd.Process.Pid), "the pid of a process that has ended, %d, counts: %v", pid, alive)
}

func TestASessionIsToldWhereItsCallerComesFrom(t *testing.T) {
	want := operator.Origin{Kind: operator.OfRun, PID: os.Getpid(), Run: operator.Run{Tenant: "t_acme", Agent: "ada"}}
	l := expect.Of(Listen(filepath.Join(t.TempDir(), "d", "s")))(t)
	got := make(chan operator.Origin, 1)
	s := New(Options{
		Split: func(line string) ([]string, error) { return []string{line}, nil },
		Find:  func(int, func() bool) operator.Origin { return want },
		Run: func(_ context.Context, t *Session) int {
			got <- t.Who.Origin
			return 0
		},
	})
	expect.No(t, s.Local(l, "alice"))
	defer s.Close()
	conn := expect.Of(Dial(t.Context(), l.Addr().String()))(t)
	code, err := Attach(t.Context(), conn, Attachment{Line: "x", Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
	expect.Must(t, code == 0 && err == nil, "%v %v", code, err)
	expect.Is(t, <-got, want)
}
