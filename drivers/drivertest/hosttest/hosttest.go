// Package hosttest has a host for tests: this machine with another home, behind a
// command that reaches it as ssh and docker exec do.
package hosttest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	driver "swarmdeck/drivers/host"
	"swarmdeck/drivers/host/hold"
	"swarmdeck/engine/host"
	"swarmdeck/expect"
)

// dialWord makes the tests' program what reaches a host: it has whoever listens
// run a command, with its own standard streams.
const dialWord = "-dial"

// Entered runs what the arguments say, if they are for this package or for package hold.
// TestMain asks it first, after package cell.
func Entered(args []string) (code int, is bool) {
	if len(args) > 3 && args[1] == dialWord {
		return dial(args[2], args[3:]), true
	}
	return hold.Entered(args)
}

func dial(socket string, argv []string) int {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 255
	}
	_ = json.NewEncoder(conn).Encode(argv)
	go func() {
		_, _ = io.Copy(conn, os.Stdin)
		_ = conn.(*net.UnixConn).CloseWrite()
	}()
	_, _ = io.Copy(os.Stdout, conn)
	return 0
}

// Command reaches the host with a home, until the test is over.
func Command(t *testing.T, home string) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l := expect.Of(net.Listen("unix", path))(t)
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { serve(conn, home) })
		}
	})
	return []string{os.Args[0], dialWord, path}
}

func serve(conn net.Conn, home string) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	line, err := in.ReadBytes('\n')
	var argv []string
	if err != nil || json.Unmarshal(line, &argv) != nil {
		return
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}, "/"
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return
	}
	cmd.Stdout = conn
	go func() {
		_, _ = io.Copy(stdin, in)
		stdin.Close()
	}()
	_ = cmd.Run()
}

// Box is a host of a tenant, linked until the test is over.
type Box struct {
	*driver.Pool
	Tenant, Name, Home string
}

// New makes one and waits for its link. Agents are those whose places are kept there.
func New(t *testing.T, cells *cell.Supervisor, tenant, name string, agents ...string) *Box {
	t.Helper()
	b := &Box{Tenant: tenant, Name: name, Home: t.TempDir()}
	h := host.Host{TenantID: tenant, Name: name, Slots: 4, LeaseS: 60, Command: Command(t, b.Home), CreatedAt: time.Now()}
	b.Pool = driver.New(driver.Options{Cells: cells, Agents: func(string, string) []string { return agents }, Grace: time.Second})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = b.Keep(ctx, h)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
		defer stop()
		if err := b.Clear(ctx, h); err != nil {
			t.Error("clear:", err)
		}
	})
	b.Await(t)
	return b
}

// Await waits for the link.
func (b *Box) Await(t *testing.T) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); b.Link(b.Tenant, b.Name).State != host.Up; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the host is not up: %+v", b.Link(b.Tenant, b.Name))
		}
	}
}

// Cut ends the link, which comes back.
func (b *Box) Cut() {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		words := strings.Split(string(line), "\x00")
		if len(words) > 3 && words[1] == hold.Word && words[2] == "link" && strings.HasPrefix(words[0], b.Home) {
			pid, _ := strconv.Atoi(filepath.Base(dir))
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// Work is the directory that an agent has there.
func (b *Box) Work(t *testing.T, agent string) string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(b.Home, ".cache/swarmdeck", hold.Prefix+"*", "agents", agent, "work"))
	if len(found) != 1 {
		t.Fatalf("%s has the directories %q", agent, found)
	}
	return found[0]
}
