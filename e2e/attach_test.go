package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"swarmdeck/expect"
	"swarmdeck/store"
	"swarmdeck/ui/door/socket"
	"swarmdeck/ui/serve"
)

// host is a user's cockpit that others attach to.
func (u *user) host() *seat {
	u.t.Helper()
	u.ok("session", "create")
	s := u.atTerminal().sit(80, 24)
	s.see(`fleet`)
	return s
}

// atTerminal is the same user at a real terminal.
func (u *user) atTerminal() *user {
	env := append([]string{}, u.env...)
	return &user{t: u.t, home: u.home, env: append(env, "TERM=xterm-256color")}
}

func (u *user) socket() string {
	return serve.SocketPath(func(string) string { return "" }, socket.Instance(u.data()))
}

func TestCommandsRunInTheProcessThatHasTheDataFile(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	s := u.host()
	u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["true"]}`, "--wait")
	s.press("2")
	s.see(`✓ succeeded true`)
	for _, info := range []string{u.socket(), filepath.Dir(u.socket())} {
		if st, err := os.Stat(info); err != nil {
			t.Error(err)
		} else if st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v", info, st.Mode())
		}
	}

	t.Run("with their input, when they read it", func(t *testing.T) {
		cmd := u.command("task", "dispatch", "--kind", "exec.run", "--input", "-", "--wait", "-o", "json")
		cmd.Stdin = strings.NewReader(`{"argv":["echo","from stdin"]}`)
		expect.Has(t, string(expect.Of(cmd.Output())(t)), `"from stdin"`)
		read, write, err := os.Pipe()
		expect.No(t, err)
		defer read.Close()
		expect.Of(write.WriteString("for the next one\n"))(t)
		cmd = u.command("task", "list")
		cmd.Stdin = read
		expect.No(t, cmd.Run())
		write.Close()
		var left bytes.Buffer
		_, err = left.ReadFrom(read)
		expect.True(t, err == nil && left.String() == "for the next one\n", "a command that reads nothing left %q, %v", left.String(), err)
	})
	t.Run("with their errors and exit codes", func(t *testing.T) {
		code, out, stderr := u.run("agent", "show", "nobody", "-o", "json")
		expect.True(t, code == 1 && out == "" && strings.Contains(stderr, `"code":"NOT_FOUND"`), "exit %d %s%s", code, out, stderr)
		code, _, stderr = u.run("task", "wait", field(u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["sleep","60"]}`, "-o", "json"), "task_id"), "--timeout", "50ms")
		expect.True(t, code == 4, "exit %d %s", code, stderr)
	})
	t.Run("in their directory", func(t *testing.T) {
		dir := filepath.Join(u.home, "elsewhere")
		expect.No(t, os.Mkdir(dir, 0o700))
		cmd := u.command("audit", "export", "--format", "csv", "--out", "here.csv")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		expect.Must(t, err == nil, "%s %v", out, err)
		expect.Of(os.Stat(filepath.Join(dir, "here.csv")))(t)
	})
	t.Run("with the store that it has open", func(t *testing.T) {
		u.ok("store", "check")
		u.ok("store", "stats")
		backup := filepath.Join(u.home, "backup.db")
		u.ok("store", "backup", backup)
		u.ok("--data", backup, "audit", "verify")
		u.ok("store", "compact")
		u.ok("audit", "verify")
	})
	t.Run("until they are interrupted", func(t *testing.T) {
		task := field(u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["sleep","60"]}`, "-o", "json"), "task_id")
		cmd := u.command("task", "wait", task)
		expect.No(t, cmd.Start())
		left := expect.Later(func() error { return cmd.Wait() })
		// Any moment will do. Where whoever runs the tests ignores interrupts, so does
		// the program until it listens.
		again := time.Tick(100 * time.Millisecond)
		for ended := false; !ended; {
			select {
			case <-left:
				ended = true
			case <-again:
				_ = cmd.Process.Signal(syscall.SIGINT)
			}
		}
		ended := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if by := ended.Signaled() && ended.Signal() == syscall.SIGINT; !by && ended.ExitStatus() != 130 {
			t.Errorf("ended by %s", cmd.ProcessState)
		}
	})
	t.Run("not for another data file", func(t *testing.T) {
		other := filepath.Join(u.home, "other.db")
		u.ok("--data", other, "session", "create")
		expect.Is(t, u.ok("--data", other, "task", "list", "-o", "json"), "", "tasks of another file")
	})
	expect.Is(t, s.leaves(), 0, "exit")
	_, err := os.Stat(u.socket())
	expect.True(t, os.IsNotExist(err), "the socket is left: %v", err)
}

func TestTwoCockpitsShowOneEngine(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	first := u.host()
	second := u.atTerminal().sit(100, 30)
	second.see(`fleet`)
	second.press("2")
	second.see(`tasks`)
	u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["echo","both see this"]}`, "--wait")
	first.press("2")
	first.see(`both see this`)
	second.see(`both see this`)
	second.resize(120, 40)
	second.until("the whole width", func() bool {
		return len([]rune(strings.Split(second.screen(), "\n")[1])) == 120
	})
	first.see(`2 here`)
	id := field(u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["rm","-r","x"]}`, "-o", "json"), "task_id")
	for _, s := range []*seat{first, second} {
		s.see(`1 need you`)
		s.press("i")
		s.see(`approval ◆ open`)
	}
	first.see(`\(` + u.name() + ` looks too\)`)
	u.ok("approval", "deny", field(u.ok("approval", "list", "--open", "-o", "json"), "approval_id"), "--reason", "no")
	first.see(`denied by ` + u.name())
	u.ok("task", "wait", id, "--status", "blocked")
	second.press("\x1a") // a program without a shell can't be stopped: it goes on
	second.press("3")
	second.see(`┌ approvals \d`) // the key was read: the terminal is the cockpit's again
	expect.Is(t, second.leaves(), 0, "the second: exit")
	first.gone(`2 here`)
	expect.Has(t, second.output(), "\x1b[?1049l", "the alternate screen is left on")
	first.press("1")
	first.see(`fleet`)
}

func TestAnAttachedCockpitTakesOverFromAKilledOne(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	first := u.host()
	successors := []*seat{u.atTerminal().sit(80, 24), u.atTerminal().sit(80, 24)}
	for _, h := range successors {
		h.see(`fleet`)
	}
	const tasks = 50
	var wg sync.WaitGroup
	for i := range tasks {
		wg.Go(func() {
			u.ok("task", "dispatch", "--kind", "exec.run", "--max-attempts", "5", "--input", fmt.Sprintf(`{"argv":["sh","-c","sleep 1; echo %d >>done"]}`, i))
		})
	}
	wg.Wait()
	expect.No(t, first.cmd.Process.Kill())
	_ = first.cmd.Wait()
	u.ok("task", "list") // one of them serves
	expect.Await(t, "cockpit that listens instead", func() bool {
		pid := u.listens()
		return pid == successors[0].cmd.Process.Pid || pid == successors[1].cmd.Process.Pid
	})
	for _, h := range successors {
		h.see(`fleet`)
	}
	expect.Await(t, "tasks did not end", func() bool {
		return strings.Count(u.ok("task", "list", "--status", "succeeded", "--page-size", "100", "-o", "json"), "\n") >= tasks
	})
	u.ok("audit", "verify")
	u.ok("audit", "reconcile")
	for _, h := range successors { // the second may be taking over when it is told to leave
		for left := false; !left; {
			h.press(ctrlC)
			select {
			case <-h.done:
				left = true
			case <-time.After(200 * time.Millisecond):
			}
		}
		if code := h.ends(); code != 0 && code != 130 && code != -1 { // a second ctrl+c while taking over ends it at once
			t.Errorf("exit %d\n%s", code, h.screen())
		}
		if strings.Contains(h.screen(), "┌ fleet") {
			t.Errorf("the screen is not given back:\n%s", h.screen())
		}
		expect.Has(t, h.screen(), "the engine of this cockpit went away", "nothing said why the screen was empty")
	}
}

// listens is the process that others attach to; 0 is none.
func (u *user) listens() int {
	conn, err := serve.Dial(u.t.Context(), u.socket())
	if err != nil {
		return 0
	}
	defer conn.Close()
	raw := expect.Of(conn.(*net.UnixConn).SyscallConn())(u.t)
	pid := 0
	_ = raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}

// TestAnEngineThatIsStoppedKeepsNobodyWaiting stops it as ctrl+z or a debugger
// does: its socket accepts on.
func TestAnEngineThatIsStoppedKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	d := u.daemon()
	u.ok("session", "create")
	expect.No(t, d.cmd.Process.Signal(syscall.SIGSTOP))
	defer func() { _ = d.cmd.Process.Signal(syscall.SIGCONT) }()
	code, _, stderr := u.run("task", "list")
	expect.True(t, code == 1 && strings.Contains(stderr, fmt.Sprintf("`kill -CONT %d`", d.cmd.Process.Pid)), "exit %d %s", code, stderr)
	expect.No(t, d.cmd.Process.Signal(syscall.SIGCONT))
	u.ok("task", "list")
}

func TestAWriteCutOffByAKillIsNotRepeated(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	s := u.host()
	cmd := u.command("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["sleep","60"]}`, "--wait", "-o", "json")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	expect.No(t, cmd.Start())
	s.press("2")
	s.see(`sleep 60`)
	expect.No(t, s.cmd.Process.Kill())
	_ = cmd.Wait()
	code := cmd.ProcessState.ExitCode()
	expect.True(t, code == 1 && strings.Contains(stderr.String(), `"code":"UNAVAILABLE"`), "exit %d %s", code, stderr.String())
	expect.Is(t, strings.Count(u.ok("task", "list", "-o", "json"), "\n"), 1)
}

// TestAnEngineThatNeverBeginsIsGivenUp has a process that has the data file,
// listens, and hangs up on everybody.
func TestAnEngineThatNeverBeginsIsGivenUp(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("session", "create")
	owner := expect.Of(store.Open(u.data(), store.Options{}))(t)
	l := expect.Of(serve.Listen(u.socket()))(t)
	var came atomic.Int64
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
			came.Add(1)
		}
	}()
	var all sync.WaitGroup
	for _, args := range [][]string{{"task", "list"}, {"session", "create"}} {
		all.Go(func() {
			if code, _, stderr := u.run(args...); code != 1 || !strings.Contains(stderr, "has not begun") || !strings.Contains(stderr, "tried for 5s") {
				t.Errorf("%q: exit %d %s", args, code, stderr)
			}
		})
	}
	all.Wait()
	n := came.Load()
	expect.True(t, n >= 10 && n <= 60, "asked %d times", n)

	// Who has the file after one that lets go of it in time carries it out.
	all.Go(func() { u.ok("session", "create") })
	expect.Await(t, "a visitor", func() bool { return came.Load() > n })
	expect.No(t, errors.Join(l.Close(), owner.Close()))
	all.Wait()
	expect.Is(t, strings.Count(u.ok("session", "list", "-o", "json"), "\n"), 2)
}

func TestIDsAreCompletedWhileAnotherProcessHasTheEngine(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	u.daemon()
	u.ok("agent", "create", "ada", "--project", "p", "--role", "r", "--", "true")
	task := field(u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["true"]}`, "--wait", "-o", "json"), "task_id")
	for want, words := range map[string][]string{
		"ada\t":     {"agent", "show", ""},
		task + "\t": {"task", "show", ""},
		"t_acme":    {"--tenant", ""},
	} {
		expect.Await(t, "completion of "+strings.Join(words, " "), func() bool { // a busy engine is not waited for
			out := u.ok(append([]string{"__complete"}, words...)...)
			return strings.Contains(out, want) && strings.Contains(out, ":4\n")
		})
	}
}
