package e2e

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"swarmdeck/app"
	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/drivers/git/lfs"
	"swarmdeck/expect"
	"swarmdeck/store"
)

// The test binary is also the program, when asked by its environment or, since
// that is not passed on to skills and agents, as the process of a query or as
// an agent's way to the engine.
func TestMain(m *testing.M) {
	celltest.Begin()
	if code, is := cell.Entered(os.Args, os.Environ()); is {
		syscall.Exit(code) // os.Exit of a race build takes a second
	}
	if len(os.Args) == 1 && os.Getenv(asCaller) != "" {
		playCaller()
		os.Exit(0)
	}
	connect := len(os.Args) == 3 && os.Args[1] == "mcp" && os.Args[2] == "connect"
	solids := len(os.Args) > 2 && os.Args[1] == "cad" && os.Args[2] == "env"
	if os.Getenv("SWARMDECK_TEST_AS_PROGRAM") != "" || connect || solids || len(os.Args) == 2 && (os.Args[1] == app.QueryWord || os.Args[1] == lfs.Word) {
		os.Exit(app.Run(os.Args))
	}
	if err := os.Chdir(".."); err != nil { // where docs and examples are
		panic(err)
	}
	if flag.Parse(); !set("test.parallel") { // they wait more than they work
		if err := flag.Set("test.parallel", "4"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// set reports whether a flag was given.
func set(name string) (given bool) {
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}

// patience is how long anything is waited for that comes by itself: far longer than
// it takes, for a machine may be busy.
const patience = 5 * time.Minute

// built is the program without the race detector, as that takes four times as long to
// begin.
var built = sync.OnceValues(func() (string, error) { return celltest.Built("swarmdeck", "build", "swarmdeck") })

// user is someone with a home directory of their own.
type user struct {
	t    testing.TB
	home string
	env  []string
	// Of one who is somebody else than this process: the program, the directory
	// in which it is started, and how. "" and nil are the usual ones.
	program string
	dir     string
	attr    *syscall.SysProcAttr
}

func newUser(t testing.TB) *user {
	home := t.TempDir()
	cache, err := os.UserCacheDir() // or each compiles the kernel of solids anew
	expect.No(t, err)
	return &user{t: t, home: home, env: []string{
		"SWARMDECK_TEST_AS_PROGRAM=1", "HOME=" + home, "PATH=" + os.Getenv("PATH"), "USER=alice", "TERM=dumb", "LANG=C.UTF-8", "XDG_CACHE_HOME=" + cache,
		"GORACE=atexit_sleep_ms=0", // or each program of a race test ends a second later
	}}
}

func (u *user) data() string {
	return filepath.Join(u.home, ".local", "share", "swarmdeck", "swarmdeck.db")
}

func (u *user) command(args ...string) *exec.Cmd {
	cmd := exec.Command(cmp.Or(u.program, os.Args[0]), args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = cmp.Or(u.dir, u.home), u.env, u.attr
	return cmd
}

// built is the program for what ends by itself.
func (u *user) built() string {
	u.t.Helper()
	return expect.Of(built())(u.t)
}

// run runs the program and returns its exit code and what it printed. Scripts and the
// demo, which are engines with all their work, have the race detector if this has it.
func (u *user) run(args ...string) (code int, stdout, stderr string) {
	u.t.Helper()
	cmd := u.command(args...)
	bound := patience
	if slices.Contains(args, "--script") || slices.Contains(args, "demo") {
		bound *= 10 // a script is many steps, each with a bound of its own
	} else if u.program == "" {
		cmd.Path = u.built()
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Start()
	if err == nil {
		asked := time.AfterFunc(bound, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) }) // which says where it hangs
		killed := time.AfterFunc(bound+10*time.Second, func() { _ = cmd.Process.Kill() })
		defer asked.Stop()
		defer killed.Stop()
		err = cmd.Wait()
	}
	expect.Must(u.t, err == nil || errors.As(err, new(*exec.ExitError)), "%v", err)
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func (u *user) ok(args ...string) string {
	u.t.Helper()
	code, out, stderr := u.run(args...)
	expect.Must(u.t, code == 0, "%q: exit %d\n%s%s", args, code, out, stderr)
	return out
}

// field finds a text field in the first line of JSON that has it.
func field(out, name string) string {
	_, rest, _ := strings.Cut(out, `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// name is what the system calls this user, whatever the environment says.
func (u *user) name() string {
	who := expect.Of(osuser.Current())(u.t)
	return who.Username
}

func TestTheDataFileIsPrivateAndOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	out := u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["sh","-c","echo $PWD"]}`, "--wait", "-o", "json")
	got := u.ok("result", "show", field(out, "task_id"), "-o", "json")
	expect.True(t, field(got, "stdout") == u.home+`\n`, "%s", got)
	expect.Is(t, field(out, "created_by"), u.name(), "operator", out)
	for path, want := range map[string]os.FileMode{u.data(): 0o600, u.data() + ".key": 0o600, filepath.Dir(u.data()): os.ModeDir | 0o700} {
		expect.Is(t, expect.Of(os.Stat(path))(t).Mode(), want, path)
	}
	u.ok("audit", "verify")
	u.ok("audit", "reconcile")
	if code, _, stderr := u.run(); code == 0 || stderr == "" {
		t.Logf("without a terminal: exit %d %s", code, stderr)
	}
}

func TestALogThatIsNotThereIsNotSound(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	for _, words := range [][]string{{"audit", "verify"}, {"audit", "reconcile"}, {"audit", "checkpoint"}} {
		code, out, stderr := u.run(words...)
		expect.True(t, code == 3 && out == "" && strings.Contains(stderr, u.data()), "%s: exit %d %s %s", words, code, out, stderr)
	}
	expect.Fails(t, expect.Fault(os.Lstat(u.data())), "a data file was made")
}

func TestReadersShareTheFileAndWritersAreToldWhoHasIt(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("session", "create")
	reader := expect.Of(store.Open(u.data(), store.Options{ReadOnly: true}))(t)
	defer reader.Close()
	u.ok("session", "list")
	u.ok("--read-only", "audit", "verify")
	code, _, stderr := u.run("session", "create", "-o", "json")
	expect.True(t, code == 3 && field(stderr, "code") == "UNAVAILABLE" && strings.Contains(stderr, u.data()),
		"a writer beside a reader: exit %d %s", code, stderr)
}

func TestReadingAnotherTenantsRecordIsAudited(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_one")
	session := field(u.ok("session", "create", "-o", "json"), "session_id")
	task := field(u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["true"]}`, "-o", "json"), "task_id")
	u.ok("agent", "create", "bob", "--project", "p", "--", "true")
	event := field(u.ok("audit", "list", "-o", "json"), "event_id")
	u.ok("tenant", "create", "t_two")
	u.env = append(u.env, "SWARMDECK_TENANT=t_two")
	named := [][]string{{"session", "show", session}, {"task", "show", task}, {"task", "why", task}, {"result", "show", task}, {"agent", "log", "bob"}, {"audit", "show", event}, {"audit", "prove", event}}
	for _, args := range named {
		code, out, stderr := u.run(append(args, "-o", "json")...)
		expect.True(t, code == 1 && out == "" && field(stderr, "code") == "DENIED", "%q: exit %d %s%s", args, code, out, stderr)
	}
	code, _, _ := u.run("task", "show", task, "--read-only")
	expect.True(t, code == 1, "--read-only: exit %d", code)
	out := u.ok("audit", "list", "--kind", "tenant.violation", "--page-size", "100", "-o", "json")
	expect.Is(t, strings.Count(out, "\n"), len(named), "attempts are in the log", out)
}

func TestDamagedFilesAreExit3AndLeftAlone(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("session", "create")
	whole := expect.Of(os.ReadFile(u.data()))(t)
	for name, data := range map[string][]byte{"cut": whole[:4*4096], "foreign": []byte("not a data file"), "empty": nil} {
		path := filepath.Join(u.home, name+".db")
		expect.No(t, os.WriteFile(path, data, 0o600))
		for _, args := range [][]string{{"session", "list"}, {"session", "create"}, {"store", "check"}} {
			code, _, stderr := u.run(append([]string{"--data", path}, args...)...)
			expect.True(t, code == 3 && strings.Contains(stderr, path), "%s %v: exit %d %s", name, args, code, stderr)
		}
		after, err := os.ReadFile(path)
		expect.True(t, err == nil && bytes.Equal(after, data), "%s was written to", name)
		left, _ := filepath.Glob(path + "?*")
		expect.True(t, len(left) == 0, "%s: files were left beside it: %q", name, left)
	}
}

func TestALimitOnFileSizesFailsTheCommitAlone(t *testing.T) {
	u := newUser(t)
	u.ok("session", "create")
	cmd := exec.Command("sh", "-c", `ulimit -f 1; exec "$0" "$@"`, os.Args[0], "session", "create", "-o", "json")
	cmd.Dir, cmd.Env = u.home, u.env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.Run()
	code := cmd.ProcessState.ExitCode()
	expect.True(t, code == 3 && strings.Contains(field(stderr.String(), "message"), "file too large"), "exit %d %s", code, &stderr)
	expect.Is(t, strings.Count(u.ok("session", "list", "-o", "json"), "\n"), 1, "sessions, want the one from before")
	u.ok("store", "check")
	// A task's own process still has the signal's default.
	out := u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["grep","SigIgn","/proc/self/status"]}`, "--wait", "-o", "json")
	out = u.ok("result", "show", field(out, "task_id"), "-o", "json")
	_, mask, _ := strings.Cut(field(out, "stdout"), `SigIgn:\t`)
	ignored, err := strconv.ParseUint(strings.TrimSuffix(mask, `\n`), 16, 64)
	expect.True(t, err == nil && ignored&(1<<(syscall.SIGXFSZ-1)) == 0, "the signal is ignored in a task: %v %s", err, out)
}

func TestSignalsEndInOrder(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		u := newUser(t)
		pidFile := filepath.Join(u.home, "pid") // it names the task's process
		cmd := u.command("task", "dispatch", "--kind", "exec.run", "--wait", "--input", `{"argv":["sh","-c","echo >`+pidFile+`; sleep 60; :"]}`)
		expect.No(t, cmd.Start())
		expect.Await(t, "process", func() bool { _, err := os.Stat(pidFile); return err == nil })
		// One that is just being started has the words of who starts it.
		expect.Await(t, "who dispatched, and the task's process", func() bool { return len(drivertest.Naming(pidFile)) == 2 })
		code, out, stderr := u.run("task", "list")
		expect.True(t, code == 0 && strings.Contains(out, "running"), "beside a running engine: exit %d %s%s", code, out, stderr)
		cmd.Process.Signal(sig)
		cmd.Wait()
		expect.Is(t, cmd.ProcessState.ExitCode(), 130, sig, "exit")
		drivertest.Gone(t, pidFile)
		u.ok("audit", "verify")
	}
}

func TestAKilledEngineIsTakenOver(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	cmd := u.command("task", "dispatch", "--kind", "exec.run", "--wait", "--input", `{"argv":["sh","-c","echo $$ >pid; test -e again || sleep 60"]}`)
	expect.No(t, cmd.Start())
	expect.Await(t, "process", func() bool { _, err := os.Stat(filepath.Join(u.home, "pid")); return err == nil })
	cmd.Process.Kill()
	cmd.Wait()
	expect.No(t, os.WriteFile(filepath.Join(u.home, "again"), nil, 0o600))
	id := field(u.ok("task", "list", "-o", "json"), "task_id")
	out := u.ok("task", "wait", id, "--timeout", patience.String(), "-o", "json")
	expect.True(t, field(out, "status") == "succeeded", "%s", out)
	u.ok("audit", "verify")
	u.ok("audit", "reconcile")
	u.ok("store", "check")
}

func TestNothingStartsBesideWhatAKilledEngineLeft(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	// Neither attempt sees the other's processes, but what of the first is left has the lock.
	script := `exec 9>lock
if test -e child; then
	flock -n 9 || echo "its child goes on" >beside
	exit 0
fi
flock 9
sleep 600 &
echo >child
wait
`
	expect.No(t, os.WriteFile(filepath.Join(u.home, "run.sh"), []byte(script), 0o600))
	cmd := u.command("task", "dispatch", "--kind", "exec.run", "--wait", "--input", `{"argv":["sh","run.sh"]}`)
	expect.No(t, cmd.Start())
	expect.Await(t, "process", func() bool { _, err := os.Stat(filepath.Join(u.home, "child")); return err == nil })
	cmd.Process.Kill()
	cmd.Wait()
	id := field(u.ok("task", "list", "-o", "json"), "task_id")
	out := u.ok("task", "wait", id, "--timeout", patience.String(), "-o", "json")
	expect.True(t, field(out, "status") == "succeeded", "%s", out)
	beside, err := os.ReadFile(filepath.Join(u.home, "beside"))
	expect.True(t, err != nil, "the next attempt began while %s", beside)
}

func TestShellsFindTheirCandidates(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	expect.Is(t, u.ok("__complete", "session", "show", ""), ":4\n", "nothing there yet")
	expect.Fails(t, expect.Fault(os.Stat(u.data())), "completing made a data file")
	id := field(u.ok("session", "create", "-o", "json"), "session_id")
	out := u.ok("__complete", "session", "show", "")
	expect.True(t, strings.HasPrefix(out, id+"\t"), "%q", out)
}
