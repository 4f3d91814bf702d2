package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

var (
	sh     = []string{"/bin/sh"}
	python = []string{"/usr/bin/python3", "-I", "-S"}
)

const yes = `{"decision":"approve","reason_code":"ok","confidence":1,"rationale":"fine"}`

func program(interpreter []string, source string) *judge.Program {
	sum := sha256.Sum256([]byte(source))
	digest := hex.EncodeToString(sum[:])
	return &judge.Program{Name: digest, Digest: digest, Interpreter: interpreter, Source: []byte(source)}
}

func runner(t testing.TB, opt Options) *Runner {
	t.Helper()
	opt.Supervisor = drivertest.Cells(t, cell.Options{Program: os.Getenv(ownInit)})
	r := expect.Of(New(opt))(t)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// jailedRunner skips where the system can't jail.
func jailedRunner(t testing.TB) *Runner {
	t.Helper()
	r := runner(t, Options{Deadline: 2 * time.Minute})
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

// attack is a program that must end as a person's to judge.
type attack struct {
	interpreter []string
	source      string
	want        string // reason code
}

// hostile are the attacks; what any of them leaves behind has mark in its
// command line.
func hostile(listener, secret, target, mark string) map[string]attack {
	return map[string]attack{
		"network":           {python, reach(`s = socket.socket(); s.settimeout(1); s.connect(("127.0.0.1", 80))`), judge.ReasonError},
		"datagram":          {python, reach(`socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 53))`), judge.ReasonError},
		"socket file":       {python, reach(`socket.socket(socket.AF_UNIX).connect("` + listener + `")`), judge.ReasonError},
		"fork bomb":         {sh, "b() { b | b & b; }; (b) &\nwhile :; do :; done\n", judge.ReasonTimeout},
		"tree of sleeps":    {sh, sleeps("%[1]s & %[1]s & (%[1]s &)\n%[1]s\n", mark), judge.ReasonTimeout},
		"closes its answer": {sh, sleeps("exec >&-\n%[1]s &\n%[1]s\n", mark), judge.ReasonTimeout},
		"1 GiB":             {python, reach(`x = bytearray(1 << 30)`), judge.ReasonError},
		"endless loop":      {sh, "while :; do :; done\n", judge.ReasonTimeout},
		"reads passwords":   {python, reach(`open("/etc/passwd").read()`), judge.ReasonError},
		"reads a secret":    {python, reach(`open("` + secret + `").read()`), judge.ReasonError},
		"lists a home":      {python, reach(`os.listdir("/root" if os.path.isdir("/root") else "/home")`), judge.ReasonError},
		"lists processes":   {python, reach(`os.listdir("/proc")`), judge.ReasonError},
		"reads its parent":  {python, reach(`open("/proc/" + str(os.getppid() or 1) + "/environ").read()`), judge.ReasonError},
		"writes":            {python, reach(`open("` + target + `", "w").write("x")`), judge.ReasonError},
		"writes itself":     {python, reach(`open(__file__, "a").write("x")`), judge.ReasonError},
		"removes":           {python, reach(`os.unlink("` + secret + `")`), judge.ReasonError},
		"name spaces":       {python, reach(`l = ctypes.CDLL(None, use_errno=True)` + "\n" + `sys.exit(3) if l.unshare(0x10000000) != 0 else None`), judge.ReasonError},
		"ends in pieces":    {sh, sleeps("printf '{\"decision\":'\n%[1]s\n", mark), judge.ReasonTimeout},
		"shouts":            {sh, "head -c 1048576 /dev/urandom >&2; exit 1\n", judge.ReasonError},
		"many gigabytes":    {python, reach(`os.fork()` + "\n" + `x = [b"x" * (64 << 20) for _ in range(16)]`), judge.ReasonError},
		"says nothing":      {sh, "exit 0\n", judge.ReasonBadOutput},
		"fails":             {sh, "echo broken >&2; exit 3\n", judge.ReasonError},
		"1 MiB of answer":   {sh, "head -c 1048576 /dev/urandom\n", judge.ReasonBadOutput},
		"answers for ever":  {sh, "while :; do echo '" + yes + "'; done\n", judge.ReasonBadOutput},
		"invalid JSON":      {sh, "echo '{\"decision\": approve}'\n", judge.ReasonBadOutput},
		"wrong enum":        {sh, "echo '" + strings.Replace(yes, `"approve"`, `"allow"`, 1) + "'\n", judge.ReasonBadOutput},
		"unknown field":     {sh, "echo '" + strings.Replace(yes, `{`, `{"x":1,`, 1) + "'\n", judge.ReasonBadOutput},
		"field twice":       {sh, "echo '" + strings.Replace(yes, `{`, `{"decision":"deny",`, 1) + "'\n", judge.ReasonBadOutput},
		"two answers":       {sh, "echo '" + yes + "'; echo '" + yes + "'\n", judge.ReasonBadOutput},
		"missing field":     {sh, "echo '{\"decision\":\"approve\",\"reason_code\":\"ok\",\"rationale\":\"\"}'\n", judge.ReasonBadOutput},
		"confidence of 2":   {sh, "echo '" + strings.Replace(yes, `:1,`, `:2,`, 1) + "'\n", judge.ReasonBadOutput},
		"no interpreter":    {[]string{"/nowhere/at/all"}, "x", judge.ReasonError},
	}
}

// sleeps is a script whose every %[1]s is ten minutes' sleep that mark names.
func sleeps(script, mark string) string { return fmt.Sprintf(script, "sleep 600."+mark) }
