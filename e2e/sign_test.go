package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"swarmdeck/expect"
)

// TestAnAnswerIsSignedOnTheMachineOfWhoAnswers: nothing but ssh and ssh-keygen is
// there, and no key and no agent leaves it.
func TestAnAnswerIsSignedOnTheMachineOfWhoAnswers(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	dora := d.client(7, "dora", "approver")
	u.ok("policy", "terms", "--sign", "high")
	task := field(u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["rm","-rf","x"]}`, "-o", "json"), "task_id")
	id := field(u.ok("approval", "list", "--open", "-o", "json"), "approval_id")
	code, _, stderr := dora.run("", "approval approve "+id+" --reason fine")
	expect.True(t, code == 1 && strings.Contains(stderr, "has to be signed"), "unsigned: exit %d %s", code, stderr)
	code, _, stderr = u.run("approval", "approve", id, "--reason", "fine")
	expect.True(t, code == 1 && strings.Contains(stderr, "has to be signed"), "unsigned here: exit %d %s", code, stderr)
	code, statement, stderr := dora.run("", "approval statement "+id+" --answer approve --reason 'I looked'")
	expect.Must(t, code == 0, "exit %d %s", code, stderr)
	dir := t.TempDir()
	path := filepath.Join(dir, "statement")
	expect.No(t, os.WriteFile(path, []byte(statement), 0o600))
	out, err := exec.Command("ssh-keygen", "-Y", "sign", "-n", "swarmdeck", "-f", dora.key(), path).CombinedOutput()
	expect.Must(t, err == nil, "%v\n%s", err, out)
	signature := expect.Of(os.ReadFile(path + ".sig"))(t)
	answer := "approval answer '" + strings.TrimSpace(statement) + "' --signature -"
	code, _, stderr = dora.run(string(signature), strings.Replace(answer, "I looked", "He looked", 1))
	expect.True(t, code == 1 && strings.Contains(stderr, "signature"), "another reason: exit %d %s", code, stderr)
	if code, out, stderr := dora.run(string(signature), answer); code != 0 || !strings.Contains(out, "approved") {
		t.Fatalf("exit %d %s%s", code, out, stderr)
	}
	u.ok("task", "wait", task)
	expect.Has(t, u.ok("audit", "verify", "-o", "json"), `"signed_answers":1`)
	u.ok("audit", "reconcile")
	line := u.ok("decision", "export", id, "--out", "proof")
	check := exec.Command("sh", "-c", line)
	check.Dir = filepath.Join(u.home, "proof")
	expect.Has(t, string(expect.Of(check.CombinedOutput())(t)), `Good "swarmdeck" signature for dora`)
}

// TestAnAttachedCockpitSignsWhereItsOperatorSits has `attach` ask at its own terminal,
// by the engine's own door and by the machine's sshd.
func TestAnAttachedCockpitSignsWhereItsOperatorSits(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("ssh is missing")
	}
	options := []string{"-q", "-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null"}
	for name, way := range map[string]func(u *user, d *daemon) []string{
		"serve": func(u *user, d *daemon) []string {
			host, port, _ := strings.Cut(d.addr, ":")
			return []string{"attach", "me@" + host, "--port", port, "--"}
		},
		"sshd": func(u *user, d *daemon) []string {
			host, port, _ := strings.Cut(u.sshd(), ":")
			return []string{"attach", host, "--program", os.Args[0], "--", "-p", port}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser(t)
			u.ok("tenant", "create", "t_acme")
			d := u.daemon()
			_, line := pair(t, 0)
			key := keyFile(t, 0)
			u.ok("operator", "set", "me", "--uid", strconv.Itoa(os.Getuid()), "--role", "admin", "--key", line)
			u.ok("policy", "terms", "--sign", "all")
			u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["rm","-rf","x"]}`)
			there := u.atTerminal()
			s := there.sit(80, 24, slices.Concat([]string{"--key", key}, way(u, d), []string{"-i", key}, options)...)
			s.see(`1 needs? you`)
			s.press("i")
			deny := func(reason string) {
				s.see(`approval . open`)
				s.see(`waits for an answer`)
				s.rests(time.Second) // a card is dead at first
				s.press("x")
				s.see(`Reason to deny`)
				s.press(reason + enter)
				s.see(`wants your signature`)
				s.see(`answer +DENY`)
				s.see(`reason +` + reason)
			}
			deny("not yet")
			s.press("y") // before anybody can have read it
			s.rests(time.Second)
			s.press("yy")
			s.press(`yes`)
			s.see(`wants your signature`)
			s.rests(time.Second) // keys that come together are none
			s.press("n")
			s.see(`not signed at the machine`)
			open := u.ok("approval", "list", "--open")
			expect.Must(t, strings.Contains(open, "rm -rf x"), "it was answered: %s", open)
			deny("never")
			s.rests(time.Second)
			s.press("y")
			s.see(`denied by me`)
			expect.Has(t, u.ok("audit", "verify", "-o", "json"), `"signed_answers":1`)
			expect.Is(t, s.leaves(), 0, "exit")
		})
	}
}

// sshd is the machine's own, which lets in whoever has the key of seed 0.
func (u *user) sshd() (addr string) {
	u.t.Helper()
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(u.t)
	return u.sshdOn(l)
}

// sshdOn is sshd where it is listened already.
func (u *user) sshdOn(l net.Listener) (addr string) {
	u.t.Helper()
	u.t.Cleanup(func() { _ = l.Close() })
	program, err := exec.LookPath("sshd")
	if err != nil {
		u.t.Skip("sshd is missing (openssh-server)")
	}
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // sshd(8): it must be there
			u.t.Fatal(err)
		}
	}
	_, line := pair(u.t, 0)
	config := fmt.Sprintf("HostKey %s\nAuthorizedKeysFile %s\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\nSetEnv %s\n",
		keyFile(u.t, 1), filepath.Join(u.home, "authorized_keys"), strings.ReplaceAll(strings.Join(u.env, " "), "TERM=dumb ", ""))
	for name, text := range map[string]string{"authorized_keys": line + "\n", "sshd_config": config} {
		expect.No(u.t, os.WriteFile(filepath.Join(u.home, name), []byte(text), 0o600))
	}
	// One process for each connection, as inetd has it: the port is ours from the beginning.
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			in, err := conn.(*net.TCPConn).File()
			_ = conn.Close()
			if err != nil {
				return
			}
			cmd := exec.Command(program, "-i", "-f", filepath.Join(u.home, "sshd_config"))
			cmd.Stdin, cmd.Stdout = in, in
			_ = cmd.Start()
			_ = in.Close()
			go func() { _ = cmd.Wait() }()
		}
	}()
	return l.Addr().String()
}
