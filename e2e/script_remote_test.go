package e2e

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
)

// client is the system's ssh with the key of one operator.
type client struct {
	t    testing.TB
	args []string
}

// client lets an operator with a role in, and gives them the system's ssh.
func (d *daemon) client(seed byte, name, role string) *client {
	d.t.Helper()
	if _, err := exec.LookPath("ssh"); err != nil {
		d.t.Skip("ssh is missing")
	}
	_, line := pair(d.t, seed)
	d.ok("--tenant", "t_acme", "operator", "set", name, "--role", role, "--key", line)
	host, port, err := net.SplitHostPort(d.addr)
	expect.No(d.t, err)
	return &client{d.t, []string{
		"-q", "-F", "none", "-i", keyFile(d.t, seed), "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null",
		"-p", port, name + "@" + host,
	}}
}

func (c *client) command(line string) *exec.Cmd {
	args := c.args
	if line != "" {
		args = append(args[:len(args):len(args)], line)
	}
	return exec.Command("ssh", args...)
}

// key is the file of the private key.
func (c *client) key() string { return c.args[slices.Index(c.args, "-i")+1] }

// run runs a line there with an input.
func (c *client) run(input, line string) (code int, stdout, stderr string) {
	c.t.Helper()
	var out, errs bytes.Buffer
	cmd := c.command(line)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func TestAScriptRunsOverSSH(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	bob := d.client(1, "bob", "operator")
	code, out, stderr := bob.run(`# work
task dispatch --kind exec.run --input @input.json -o json
capture ID task_id
await task $ID status=succeeded
task show $ID
stdout succeeded
result show $ID -o json
stdout 'from the script'
capture TEXT output.stdout
# what the role forbids
! operator set eve --rights admin --key -
stderr 'needs the rights of admin'
! task dispatch --kind exec.run --input @/etc/passwd
stderr 'from another machine'
# the screen
cockpit 80x24
await screen /fleet/
key 2
await screen /from the script/
-- input.json --
{"argv":["echo","from the script"]}
`, "swarmdeck --script -")
	expect.True(t, code == 0 && strings.Contains(out, "stdin: ok"), "exit %d %s%s", code, out, stderr)
	log := u.ok("audit", "list", "--kind", "task.queued", "-o", "json")
	expect.True(t, strings.Contains(log, `"actor":"bob"`) && strings.Contains(log, `"door":"ssh"`), "who asked: %s", log)
	code, _, stderr = bob.run("# first\nversion\n# second\ntask show tk_none\n", "swarmdeck --script -")
	expect.True(t, code == 1 && strings.Contains(stderr, "FAIL stdin:4:") && strings.Contains(stderr, "phase: second"), "exit %d %s", code, stderr)
	code, _, stderr = d.client(2, "ann", "viewer").run("task dispatch --kind exec.run --input '{\"argv\":[\"true\"]}'\n", "swarmdeck --script -")
	expect.True(t, code == 1 && strings.Contains(stderr, "needs the rights of operator, you have those of viewer"), "a viewer's script: exit %d %s", code, stderr)
}

func TestAScriptFromElsewhereTouchesNothingOfTheMachine(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	u.ok("tenant", "create", "t_beta")
	d := u.daemon()
	admin := d.client(1, "bob", "admin")
	secret := filepath.Join(u.home, "secret")
	expect.No(t, os.WriteFile(secret, []byte("xyzzy\n"), 0o600))
	written := filepath.Join(u.home, "written")
	for _, line := range []string{
		"exec touch " + written, "? exec touch " + written, "'exec' touch " + written, "env X=exec\n$X touch " + written, "! exec touch " + written,
		"[unix] exec touch " + written, "'[short]' version", "[exec:touch] version",
		"cmp " + secret + " stdout", "cmp stdout '" + secret + "'", "env F=" + secret + "\ncmp stdout $F", "cmp stdout ../secret",
		"grep x " + secret, "stdin " + secret, "cp " + secret + " x", "exists " + secret, "cd /", "rm " + secret, "mkdir " + written, "symlink x -> " + secret, "unquote " + secret,
		"version\n-- ../../written --\nx", "version\n-- " + written + " --\nx", "env D=" + u.home + "\nversion\n-- ${D}/written --\nx",
		"task dispatch --kind exec.run --input @" + secret, "policy propose " + secret, "skill load " + secret, "audit export --format jsonl --out " + written,
		"restart", "task list --tenant t_beta", "--as root task list", "swarmdeck --as root task list", "swarmdeck --data " + secret + " task list", "serve", "mcp", "store stats", "up @x\n-- x --\ntenant: t_acme",
		"cockpit 4000x4000", "cockpit\nresize 4000x4000", "cockpit --tenant t_beta", "cockpit --data " + secret,
	} {
		code, out, stderr := admin.run(line+"\n", "swarmdeck --script -")
		expect.True(t, code != 0 && !strings.Contains(out+stderr, "xyzzy"), "%s: exit %d %s%s", line, code, out, stderr)
	}
	for _, path := range []string{written, secret} {
		_, err := os.Stat(path)
		expect.True(t, (err == nil) == (path == secret), "%s: %v", path, err)
	}
	// A script can say it is somebody else; nobody listens.
	code, out, stderr := admin.run("session create --name eve -o json\ncapture USER name\nsession create --name mine -o json\nstdout t_acme\n", "swarmdeck --script -")
	expect.True(t, code == 0, "exit %d %s%s", code, out, stderr)
	log := u.ok("--tenant", "t_acme", "audit", "list", "--kind", "session.created", "-o", "json")
	expect.True(t, !strings.Contains(log, `"actor":"eve"`) && strings.Contains(log, `"actor":"bob"`), "who asked: %s", log)
	for input, want := range map[string]string{
		"env A=x\n" + strings.Repeat("env A=$A$A\n", 35):  "stdin:1: env",
		"version\nversion " + strings.Repeat("$A", 100):   "stdin:2: a line",
		"version\nversion " + strings.Repeat("x", 65<<10): "stdin:2: a line",
		"session create --name " + strings.Repeat("x", 100) + " -o json\ncapture A name\n" + "version " + strings.Repeat("$A", 65) + "\n": "stdin:3: a line",
	} {
		code, _, stderr := admin.run(input, "swarmdeck --script -")
		expect.True(t, code != 0 && strings.Contains(stderr, want), "want %q: exit %d %.300s", want, code, stderr)
	}
	code, _, stderr = admin.run(strings.Repeat("help task\n", 20_000), "swarmdeck --script -")
	expect.True(t, code == 1 && strings.Contains(stderr, "printed more than"), "a flood: exit %d %.300s", code, stderr)
	code, _, stderr = admin.run("version\n", "swarmdeck --script -")
	expect.True(t, code == 0, "afterwards: exit %d %s", code, stderr)
}

func TestAScriptFromElsewhereTakesBoundedMemory(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	bob := d.client(1, "bob", "operator")
	task := field(u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["echo","`+strings.Repeat("o", 3900)+`"]}`, "--wait", "-o", "json"), "task_id")
	for flood, lines := range map[string]string{
		"what was waited for": strings.Repeat("await task "+task+" status=succeeded\n", 2500),
		"what was captured":   "task show " + task + " -o json\n" + strings.Repeat("capture A input\n", 2500),
	} {
		code, _, stderr := bob.run(lines, "swarmdeck --script -")
		expect.True(t, code == 1 && strings.Contains(stderr, "printed more than"), "%s: exit %d %.300s", flood, code, stderr)
	}
	for pattern, refused := range map[string]bool{
		`stdout 'swarmdeck.*[0-9a-z]{1,64}$'`: false, `! stdout '((a{9}){9}){9}'`: false, `! stdout '^$A{0}a{3}$B'`: false,
		`stdout '(` + strings.Repeat("a?", 100) + `){1000}'`: true, `! stderr '((x.*y){100}){100}'`: true, `screen /a{99999999999999999999}/`: true, `await -t 1s screen /($A$B){10}/`: true,
	} {
		code, _, stderr := bob.run("version\n"+pattern+"\n", "swarmdeck --script -")
		expect.True(t, refused == (code == 2 && strings.Contains(stderr, "stdin:2: ") && strings.Contains(stderr, "written out")) && (refused || code == 0),
			"%s: exit %d %.300s", pattern, code, stderr)
	}
}

func TestLinesArePipedOverSSH(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	bob := d.client(1, "bob", "operator")
	lines := "task dispatch --kind exec.run --input '{\"argv\":[\"echo\",\"one\"]}' --wait\noperator here\n"
	code, out, stderr := bob.run(lines, "")
	expect.True(t, code == 0 && strings.Contains(out, "succeeded") && strings.Contains(out, "bob") && !strings.ContainsAny(out, "\x1b\r"),
		"exit %d %q %s", code, out, stderr)
	code, out, stderr = bob.run("task show tk_none\nno such\nversion\n", "")
	expect.True(t, code == 2 && strings.Contains(stderr, "tk_none") && strings.Contains(out, "swarmdeck"), "exit %d %s%s", code, out, stderr)
	code, _, stderr = d.client(2, "ann", "viewer").run(lines, "")
	expect.True(t, code == 1 && strings.Contains(stderr, "needs the rights of operator, you have those of viewer"), "a viewer: exit %d %s", code, stderr)
}

func TestOutputOverSSHComesAsItIsMade(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	bob := d.client(1, "bob", "operator")
	u.ok("agent", "create", "sayer", "--project", "p", "--role", "r", "--", "sh", "-c", "while read -r line; do while :; do echo tick; sleep 0.1; done; done")
	u.ok("agent", "assign", "sayer", "go")
	cmd := bob.command("agent log sayer --follow")
	out := expect.Of(cmd.StdoutPipe())(t)
	expect.No(t, cmd.Start())
	buf, seen := make([]byte, 4096), ""
	for !strings.Contains(seen, "tick") {
		n, err := out.Read(buf)
		seen += string(buf[:n])
		expect.Must(t, err == nil, "%v: %s", err, seen)
	}
	// The reader goes: what it followed ends, and the engine goes on.
	_ = out.Close()
	ended := expect.Later(func() error { return cmd.Wait() })
	select {
	case <-ended:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Error("the command goes on without its reader")
	}
	code, _, stderr := bob.run("", "version")
	expect.True(t, code == 0, "exit %d %s", code, stderr)
}
