package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/expect"
	"swarmdeck/ui/door/socket"
	"swarmdeck/ui/serve"
)

// siege is a machine with an engine of the built program on it, and all that an
// attacker within its cells could wish for.
type siege struct {
	*user
	d      *daemon
	root   string
	world  map[string]any // as the attacker of drivers/cell reads it
	secret string
	victim *exec.Cmd
}

// siegeAs makes one, whose engine is started in a setting.
func siegeAs(t *testing.T, attacker string, as celltest.Setting) *siege {
	t.Helper()
	root, err := os.MkdirTemp("", "s") // a socket's path is short
	expect.No(t, err)
	t.Cleanup(func() { os.RemoveAll(root) })
	celltest.Passable(t, root)
	in := func(name string) string { return filepath.Join(root, name) }
	s := &siege{root: root, secret: "TOPSECRET-0123456789abcdef01234567"}
	for _, name := range []string{"home", "work", "run", "foreign", "kept", "scratch", "home/.ssh"} {
		expect.No(t, os.Mkdir(in(name), 0o700))
	}
	for name, text := range map[string]string{"home/.ssh/id_ed25519": s.secret, "foreign/secret": s.secret, "kept/secret": s.secret, "scratch/secret": s.secret, "outside": "untouched"} {
		expect.No(t, os.WriteFile(in(name), []byte(text), 0o600))
	}
	for name, from := range map[string]string{"engine": "/proc/self/exe", "program": (&user{t: t}).built(), "attacker": attacker} {
		celltest.Copy(t, from, in("work/"+name))
	}
	s.give(t, as.Owner(), root)
	s.give(t, workerOf(as), in("work"))
	s.user = &user{
		t: t, home: in("home"), dir: in("work"), program: in("work/program"), attr: &syscall.SysProcAttr{Credential: as.Attr.Credential},
		env: []string{
			"SWARMDECK_TEST_AS_PROGRAM=1", "HOME=" + in("home"), "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "USER=alice", "TERM=dumb", "LANG=C.UTF-8",
			"XDG_RUNTIME_DIR=" + in("run"), "TMPDIR=" + in("scratch"), "GORACE=atexit_sleep_ms=0",
		},
	}
	s.ok("tenant", "create", "t_acme")
	s.ok("session", "create", "--name", s.secret)
	engine := *s.user
	engine.program, engine.attr = in("work/engine"), &as.Attr
	if as.Refuse {
		engine.env = append(slices.Clone(s.env), celltest.WithoutSpaces+"=1")
	}
	s.d = engine.daemon()
	s.stage(t, as)
	return s
}

// workerOf is whose the work directory is: root's own is nothing for a worker
// where there are no name spaces.
func workerOf(as celltest.Setting) int {
	if as.Owner() == 0 && !as.Spaces {
		return celltest.Nobody
	}
	return as.Owner()
}

// give makes a tree a user's.
func (s *siege) give(t *testing.T, to int, tree string) {
	t.Helper()
	expect.No(t, filepath.WalkDir(tree, func(path string, _ os.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, to, to)
		}
		return err
	}))
}

// stage makes what is there beside the files.
func (s *siege) stage(t *testing.T, as celltest.Setting) {
	t.Helper()
	s.victim = exec.Command("sleep", "300")
	s.victim.Args[0] = s.secret
	s.victim.SysProcAttr = &syscall.SysProcAttr{Credential: as.Attr.Credential}
	expect.No(t, s.victim.Start())
	t.Cleanup(func() { _ = s.victim.Process.Kill(); _ = s.victim.Wait() })
	_ = s.victim.Process.Signal(syscall.SIGSTOP) // so that it is seen when a signal comes to it
	l := expect.Of(net.Listen("tcp", ":0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Errorf("reach out: somebody came from %s", c.RemoteAddr())
			c.Close()
		}
	}()
	host := "127.0.0.1"
	all, _ := net.InterfaceAddrs()
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			host = n.IP.String()
		}
	}
	socket := serve.SocketPath(func(string) string { return filepath.Join(s.root, "run") }, socket.Instance(s.data()))
	var devices []uint64
	for _, path := range []string{"/", "/etc", "/usr", "/var", "/tmp", s.root} {
		var st syscall.Stat_t
		if syscall.Stat(path, &st) == nil {
			devices = append(devices, st.Dev)
		}
	}
	var terminals syscall.Stat_t
	_ = syscall.Stat("/dev/pts", &terminals)
	var handle []byte
	kind := int32(0)
	if h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, filepath.Join(s.root, "scratch", "secret"), 0); err == nil {
		handle, kind = h.Bytes(), h.Type()
	}
	s.world = map[string]any{
		"Handle": handle, "Kind": kind,
		"Dir": s.dir, "Home": s.home, "Data": filepath.Dir(s.data()), "Socket": socket, "Sockets": []string{socket},
		"Foreign": filepath.Join(s.root, "foreign"), "Kept": filepath.Join(s.root, "kept"), "Scratch": filepath.Join(s.root, "scratch"),
		"Outside": filepath.Join(s.root, "outside"), "Engine": s.d.cmd.Process.Pid, "Victim": s.victim.Process.Pid,
		"Host": host, "TCP": l.Addr().(*net.TCPAddr).Port, "Devices": devices, "Terminals": terminals.Dev,
		"Spaces": as.Spaces, "Ways": as.Spaces,
	}
}

// attack is the environment of an attacker whose leftovers carry a mark.
func (s *siege) attack(mark string) string {
	s.world["Mark"] = mark
	data := expect.Of(json.Marshal(s.world))(s.t)
	return string(data)
}

// withstood reads what an attacker said, and returns the deeds that somebody is
// to know of.
func (s *siege) withstood(t *testing.T, said, mark string) (told []string) {
	t.Helper()
	made := 0
	for line := range strings.Lines(said) {
		what, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch what {
		case "MADE":
			made, _ = strconv.Atoi(rest)
		case "TOLD":
			told = strings.Fields(rest)
		default:
			t.Errorf("worked: %s", line)
		}
	}
	expect.Must(t, made >= 300, "%d attempts were made:\n%s", made, said)
	for _, path := range []string{"foreign", "kept", "scratch", "home"} {
		entries := expect.Of(os.ReadDir(filepath.Join(s.root, path)))(t)
		for _, e := range entries {
			expect.True(t, !strings.HasPrefix(e.Name(), "pwned"), "write: %s is in %s", e.Name(), path)
		}
	}
	expect.Is(t, string(expect.Of(os.ReadFile(filepath.Join(s.root, "outside")))(t)), "untouched", "write: outside is")
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.victim.Process.Pid))
	expect.True(t, err == nil && strings.Contains(string(stat), ") T "), "escape: a signal came to the victim: %s %v", stat, err)
	expect.Await(t, "end of what was to outlive the run", func() bool { return len(marked(mark)) == 0 })
	return told
}

// marked are the processes whose command line begins with a mark.
func marked(mark string) (pids []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		if line, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(line), mark+":") {
			pids = append(pids, path)
		}
	}
	return pids
}

// known checks that the log has all deeds of a run, each once.
func (s *siege) known(t *testing.T, actor string, deeds []string) {
	t.Helper()
	var got []string // all of it: a run is over once it is told
	for line := range strings.Lines(s.ok("audit", "list", "--kind", "cell.refused", "--agent", actor, "--page-size", "100", "-o", "json")) {
		got = append(got, field(line, "deed"))
		if field(line, "actor") != actor || field(line, "call") == "" || field(line, "program") == "" || !strings.Contains(field(line, "says"), " tried to ") {
			t.Errorf("%s", line)
		}
	}
	slices.Sort(got)
	expect.Same(t, got, deeds, "the log has", "of", actor)
	if s.world["Ways"] == true {
		log := s.ok("audit", "list", "--kind", "egress.refused", "--agent", actor, "--page-size", "100", "-o", "json")
		for _, host := range []string{"127.0.0.1", "169.254.169.254", "10.0.0.1"} {
			expect.Has(t, log, `"host":"`+host+`"`, "the log has no word of", host)
		}
	}
}

// assign gives an agent a task once it is there.
func (s *siege) assign(t *testing.T, agent, what string) {
	t.Helper()
	expect.Await(t, "agent that is ready", func() bool {
		code, _, _ := s.run("agent", "assign", agent, what)
		return code == 0
	})
}

// allowing answers what the attackers ask with yes until something is so.
func (s *siege) allowing(t *testing.T, what string, ok func() bool) {
	t.Helper()
	expect.Await(t, what, func() bool {
		for line := range strings.Lines(s.ok("approval", "list", "--open", "-o", "json")) {
			if strings.Contains(line, "attack") || strings.Contains(line, `"eve"`) {
				_, _, _ = s.run("approval", "approve", field(line, "approval_id"), "--reason", "to see what it can do")
			}
		}
		return ok()
	})
}

// TestAHostileRunIsHeldAndKnown lets the attacker of drivers/cell loose in a task
// and in an agent, both workers of the built program, as whom and with how much
// of a wall there may be. The agent tries to be a person too.
func TestAHostileRunIsHeldAndKnown(t *testing.T) {
	attacker := expect.Of(celltest.Attacker())(t)
	settings := []celltest.Setting{{Name: "this user", Spaces: true}}
	if os.Geteuid() == 0 && os.Getenv("CELL_SETTINGS") == "all" { // drivers/cell tries the others each time
		settings = append(settings, celltest.Settings()...)
	}
	for _, as := range settings {
		t.Run(as.Name, func(t *testing.T) { // one by one: an attacker takes all of a machine
			s := siegeAs(t, attacker, as)
			_, line := pair(t, 9)
			mark := "siege" + strconv.Itoa(os.Getpid()) + strings.ReplaceAll(as.Name, " ", "-")
			for name, text := range map[string]string{
				"key.pub":   line,
				"swarmdeck": "#!/bin/sh\nexec " + s.program + " \"$@\"\n",
				"asker.sh":  "read x\necho '{\"type\":\"tool_request\",\"call_id\":\"c\",\"tool\":\"db.drop\",\"args\":{},\"risk\":\"critical\"}'\nread answer\necho '{\"type\":\"result\",\"status\":\"succeeded\"}'\n",
				"agent.sh":  "read x\nif mkdir once; then exec ./attacker attack </dev/null >attacked 2>&1; fi\nsh usurp.sh by-agent\necho '{\"type\":\"result\",\"status\":\"succeeded\"}'\n",
			} {
				path := filepath.Join(s.dir, name)
				expect.No(t, os.WriteFile(path, []byte(text), 0o755))
			}
			s.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["rm","-r","x"]}`)
			open := field(s.ok("approval", "list", "--open", "-o", "json"), "approval_id")
			s.ok("agent", "create", "ada", "--project", "P", "--", "sh", "asker.sh")
			s.assign(t, "ada", "drop it")
			critical := ""
			expect.Await(t, "critical approval", func() bool {
				critical = field(s.ok("approval", "list", "--open", "--page-size", "1", "-o", "json"), "approval_id")
				return critical != open
			})
			_, names := s.usurper(s.dir, open, critical)
			s.give(t, workerOf(as), s.dir)

			// A task of its own.
			input, err := json.Marshal(map[string]any{"argv": []string{"./attacker", "attack"}, "env": map[string]string{"ATTACK": s.attack(mark + "-task")}})
			expect.No(t, err)
			id := field(s.ok("task", "dispatch", "--kind", "exec.run", "--input", string(input), "--max-attempts", "0", "-o", "json"), "task_id")
			s.allowing(t, "end of the task", func() bool { return strings.Contains(s.ok("task", "show", id, "-o", "json"), `"completed_at"`) })
			var result struct{ Output struct{ Stdout string } }
			expect.No(t, json.Unmarshal([]byte(s.ok("result", "show", id, "-o", "json")), &result))
			if result.Output.Stdout == "" {
				t.Fatalf("the task's attacker said nothing: %s", s.ok("task", "show", id, "-o", "json"))
			}
			s.known(t, id, s.withstood(t, result.Output.Stdout, mark+"-task"))

			// An agent.
			s.ok("agent", "create", "eve", "--project", "P", "--env", "ATTACK="+s.attack(mark+"-agent"), "--", "sh", "agent.sh")
			s.assign(t, "eve", "try it")
			s.allowing(t, "end of the agent's attempts", func() bool {
				_, _, _ = s.run("agent", "assign", "eve", "try again") // the attacker has no result
				_, err := os.Stat(filepath.Join(s.dir, "by-agent"))
				return err == nil
			})
			s.ok("agent", "delete", "eve", "--yes")
			said := expect.Of(os.ReadFile(filepath.Join(s.dir, "attacked")))(t)
			s.known(t, "eve", s.withstood(t, string(said), mark+"-agent"))
			// It finds no engine, or makes one of its own, within its cell.
			tried, err := os.ReadFile(filepath.Join(s.dir, "by-agent"))
			expect.True(t, err == nil && strings.Count(string(tried), "\n") == len(names), "tried %q, %v", tried, err)
			s.unusurped(t, open, critical)
			s.ok("audit", "verify")
			s.ok("audit", "reconcile")
		})
	}
}
