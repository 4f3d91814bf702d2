package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"swarmdeck/engine/judge"
)

var (
	sh     = []string{"/bin/sh"}
	python = []string{"/usr/bin/python3", "-I", "-S"}
)

const yes = `{"decision":"approve","reason_code":"ok","confidence":1,"rationale":"fine"}`

func program(interpreter []string, source string) *judge.Program {
	sum := sha256.Sum256([]byte(source))
	return &judge.Program{Digest: hex.EncodeToString(sum[:]), Interpreter: interpreter, Source: []byte(source)}
}

func runner(t testing.TB, opt Options) *Runner {
	t.Helper()
	opt.Jail = []string{"/proc/self/exe", jailWord}
	r, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// jailedRunner skips where the system can't jail.
func jailedRunner(t testing.TB) *Runner {
	t.Helper()
	r := runner(t, Options{})
	if ok, why := r.Jailed(context.Background()); !ok {
		t.Skip("this system can't jail: " + why)
	}
	return r
}

func need(t testing.TB, interpreter []string) {
	t.Helper()
	if _, err := os.Stat(interpreter[0]); err != nil {
		t.Skip(interpreter[0] + " is not installed")
	}
}

// A program that reaches for something says yes only when it got it: a yes is
// a hole in the jail. Else it fails, which is a fault.
func reach(python string) string {
	return "import sys, os, socket, ctypes\n" + python + "\nprint('" + yes + "')\n"
}

func hostile(listener, secret, target string) map[string]struct {
	interpreter []string
	source      string
	want        string
} {
	type c = struct {
		interpreter []string
		source      string
		want        string
	}
	return map[string]c{
		"network":          {python, reach(`s = socket.socket(); s.settimeout(1); s.connect(("127.0.0.1", 80))`), judge.ReasonError},
		"datagram":         {python, reach(`socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 53))`), judge.ReasonError},
		"socket file":      {python, reach(`socket.socket(socket.AF_UNIX).connect("` + listener + `")`), judge.ReasonError},
		"fork bomb":        {sh, "b() { b | b & b; }; (b) &\nwhile :; do :; done\n", judge.ReasonTimeout},
		"tree of sleeps":   {sh, "sleep 60 & sleep 60 & (sleep 60 &) \nsleep 60\n", judge.ReasonTimeout},
		"leaves a process": {sh, "sleep 60 &\nsleep 60\n", judge.ReasonTimeout},
		"1 GiB":            {python, reach(`x = bytearray(1 << 30)`), judge.ReasonError},
		"endless loop":     {sh, "while :; do :; done\n", judge.ReasonTimeout},
		"reads passwords":  {python, reach(`open("/etc/passwd").read()`), judge.ReasonError},
		"reads a secret":   {python, reach(`open("` + secret + `").read()`), judge.ReasonError},
		"lists a home":     {python, reach(`os.listdir("/root" if os.path.isdir("/root") else "/home")`), judge.ReasonError},
		"lists processes":  {python, reach(`os.listdir("/proc")`), judge.ReasonError},
		"reads its parent": {python, reach(`open("/proc/" + str(os.getppid() or 1) + "/environ").read()`), judge.ReasonError},
		"writes":           {python, reach(`open("` + target + `", "w").write("x")`), judge.ReasonError},
		"writes itself":    {python, reach(`open(__file__, "a").write("x")`), judge.ReasonError},
		"removes":          {python, reach(`os.unlink("` + secret + `")`), judge.ReasonError},
		"name spaces":      {python, reach(`l = ctypes.CDLL(None, use_errno=True)` + "\n" + `sys.exit(3) if l.unshare(0x10000000) != 0 else None`), judge.ReasonError},
		"says nothing":     {sh, "exit 0\n", judge.ReasonBadOutput},
		"fails":            {sh, "echo broken >&2; exit 3\n", judge.ReasonError},
		"1 MiB of answer":  {sh, "head -c 1048576 /dev/urandom\n", judge.ReasonBadOutput},
		"answers for ever": {sh, "while :; do echo '" + yes + "'; done\n", judge.ReasonBadOutput},
		"invalid JSON":     {sh, "echo '{\"decision\": approve}'\n", judge.ReasonBadOutput},
		"wrong enum":       {sh, "echo '" + strings.Replace(yes, `"approve"`, `"allow"`, 1) + "'\n", judge.ReasonBadOutput},
		"unknown field":    {sh, "echo '" + strings.Replace(yes, `{`, `{"x":1,`, 1) + "'\n", judge.ReasonBadOutput},
		"field twice":      {sh, "echo '" + strings.Replace(yes, `{`, `{"decision":"deny",`, 1) + "'\n", judge.ReasonBadOutput},
		"two answers":      {sh, "echo '" + yes + "'; echo '" + yes + "'\n", judge.ReasonBadOutput},
		"missing field":    {sh, "echo '{\"decision\":\"approve\",\"reason_code\":\"ok\",\"rationale\":\"\"}'\n", judge.ReasonBadOutput},
		"confidence of 2":  {sh, "echo '" + strings.Replace(yes, `:1,`, `:2,`, 1) + "'\n", judge.ReasonBadOutput},
		"no interpreter":   {[]string{"/nowhere/at/all"}, "x", judge.ReasonError},
	}
}

// rounds is how often each hostile program is run.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("POLICY_ROUNDS")); err == nil && n > 0 {
		return n
	}
	return 2
}

func TestHostileProgramsAlwaysAskAPerson(t *testing.T) {
	need(t, python)
	r := jailedRunner(t)
	r.opt.Deadline = 700 * time.Millisecond
	dir := t.TempDir()
	listener := filepath.Join(dir, "door")
	door, err := net.Listen("unix", listener)
	if err != nil {
		t.Fatal(err)
	}
	defer door.Close()
	secret, target := filepath.Join(dir, "secret"), filepath.Join(dir, "target")
	if err := os.WriteFile(secret, []byte("secret"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, c := range hostile(listener, secret, target) {
		t.Run(name, func(t *testing.T) {
			p := program(c.interpreter, c.source)
			for range rounds() {
				began := time.Now()
				got := r.Decide(context.Background(), p, []byte(`{"schema":1}`))
				if got.Decision != "hitl" || !got.Fault || got.Unsandboxed || *got.Confidence != 0 {
					t.Fatalf("got %+v", got)
				}
				// A loaded machine may start an interpreter too late; that is a person's, too.
				if got.ReasonCode != c.want && got.ReasonCode != judge.ReasonTimeout {
					t.Fatalf("reason %s (%s; %s), want %s", got.ReasonCode, got.Rationale, got.Stderr, c.want)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Fatalf("took %s", took)
				}
			}
		})
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("a program wrote a file")
	}
	if b, _ := os.ReadFile(secret); string(b) != "secret" {
		t.Error("a program changed a file")
	}
}

func TestHostileProgramsAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user; the other tests run as an ordinary one already")
	}
	ctx, stop := context.WithTimeout(context.Background(), 50*time.Second)
	defer stop()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.run", "TestHostileProgramsAlwaysAskAPerson|TestAGoodProgramDecides", "-test.v")
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=/tmp", "HOME=/", "POLICY_ROUNDS=" + os.Getenv("POLICY_ROUNDS")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestHostileProgramsAlwaysAskAPerson") {
		if strings.Contains(string(out), "this system can't jail") {
			t.Skip("an ordinary user can't jail here")
		}
		t.Fatalf("%v\n%s", err, out)
	}
}
