package e2e

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"swarmdeck/drivers/cell/celltest"
	"swarmdeck/expect"
)

// daemon is swarmdeck serve, with an address for operators.
type daemon struct {
	*user
	cmd  *exec.Cmd
	addr string
	said string // on the standard error, until it served
}

func (u *user) daemon(args ...string) *daemon {
	u.t.Helper()
	if len(args) == 0 {
		args = []string{"serve", "--ssh", "127.0.0.1:0"}
	}
	d := &daemon{user: u, cmd: u.command(args...)}
	said := expect.Of(d.cmd.StderrPipe())(u.t)
	expect.No(u.t, d.cmd.Start())
	u.t.Cleanup(func() {
		_ = d.cmd.Process.Signal(syscall.SIGTERM)
		_ = d.cmd.Wait()
	})
	var text []byte
	buf := make([]byte, 4096)
	at, served := regexp.MustCompile(`ssh://(\S+)\n`), regexp.MustCompile(`(?m)^serving .*; interrupt to stop$`)
	for !served.Match(text) {
		n, err := said.Read(buf)
		text = append(text, buf[:n]...)
		expect.Must(u.t, err == nil, "serve ended: %s", text)
	}
	if d.said = string(text); at.Match(text) {
		d.addr = string(at.FindSubmatch(text)[1])
	}
	go func() {
		for {
			if _, err := said.Read(buf); err != nil {
				return
			}
		}
	}()
	return d
}

// pair is a key pair made of a seed, and its public line.
func pair(t testing.TB, seed byte) (ssh.Signer, string) {
	t.Helper()
	raw := make([]byte, ed25519.SeedSize)
	raw[0] = seed
	signer := expect.Of(ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(raw)))(t)
	return signer, strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}

// keyFile holds the private key of pair.
func keyFile(t testing.TB, seed byte) string {
	t.Helper()
	raw := make([]byte, ed25519.SeedSize)
	raw[0] = seed
	block := expect.Of(ssh.MarshalPrivateKey(ed25519.NewKeyFromSeed(raw), ""))(t)
	file := filepath.Join(t.TempDir(), "key")
	expect.No(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	return file
}

// guest is an operator on another machine.
type guest struct {
	t      testing.TB
	client *ssh.Client
}

func (d *daemon) dial(name string, signer ssh.Signer) (*guest, error) {
	client, err := ssh.Dial("tcp", d.addr, &ssh.ClientConfig{
		User: name, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: 10 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	d.t.Cleanup(func() { _ = client.Close() })
	return &guest{d.t, client}, nil
}

func (d *daemon) enter(name string, signer ssh.Signer) *guest {
	d.t.Helper()
	return expect.Of(d.dial(name, signer))(d.t)
}

// run runs a command line there.
func (g *guest) run(line string) (code int, stdout, stderr string) {
	g.t.Helper()
	s, err := g.client.NewSession()
	if err != nil {
		return -1, "", err.Error()
	}
	defer s.Close()
	var out, errs bytes.Buffer
	s.Stdout, s.Stderr = &out, &errs
	if err := s.Run(line); err != nil {
		exit, ok := err.(*ssh.ExitError)
		if !ok {
			return -1, out.String(), errs.String() + err.Error()
		}
		code = exit.ExitStatus()
	}
	return code, out.String(), errs.String()
}

func TestRolesAreHeldOverSSH(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	u.ok("tenant", "create", "t_beta")
	d := u.daemon()
	roles := []string{"viewer", "operator", "approver", "admin"}
	guests := map[string]*guest{}
	for i, role := range roles {
		signer, line := pair(t, byte(i))
		u.ok("--tenant", "t_acme", "operator", "set", role, "--role", role, "--key", line)
		guests[role] = d.enter("anyone", signer)
	}
	for _, c := range []struct {
		line string
		from int // the least of the roles that may
	}{
		{"task list -o json", 0},
		{`task dispatch --kind exec.run --input '{"argv":["true"]}'`, 1},
		{"budget set tenant --tasks 100000", 2},
		{"operator set guest --role viewer --key '" + func() string { _, l := pair(t, 99); return l }() + "'", 3},
		{"tenant create t_more", 4},
		{"store stats", 4},
		{"--tenant t_beta task list", 4},
		{"audit export --format jsonl --out stolen", 4},
		{"task dispatch --kind exec.run --input @/etc/passwd", 4},
		{"--data /tmp/x.db task list", 4},
		{"--as root task list", 4},
		{"--script /etc/passwd", 4},
		{"serve", 4},
		{"up -", 4},
		{"mcp --agent anyone", 4},
		{"mcp add far --url https://far.example --header Authorization=HOME", 3},
		{"attach elsewhere", 4},
		{"demo", 4},
	} {
		for i, role := range roles {
			code, out, stderr := guests[role].run(c.line)
			expect.Is(t, code == 0, i >= c.from, role, c.line, "exit", code, out, stderr)
		}
	}
	_, out, _ := guests["viewer"].run("tenant list -o json")
	expect.True(t, !strings.Contains(out, "t_beta") && strings.Contains(out, "t_acme"), "tenants: %s", out)
	n := strings.Count(u.ok("--tenant", "t_acme", "audit", "list", "--kind", "operator.refused", "--page-size", "100", "-o", "json"), "\n")
	expect.True(t, n >= 10, "%d refusals in the log", n)
	signer, line := pair(t, 0)
	u.ok("--tenant", "t_beta", "operator", "set", "elsewhere", "--role", "admin", "--key", line)
	code, _, stderr := d.enter("anyone", signer).run("task list")
	expect.True(t, code == 1 && strings.Contains(stderr, "t_acme, t_beta"), "a key of two tenants: exit %d %s", code, stderr)
	code, _, stderr = d.enter("t_beta", signer).run(`task dispatch --kind exec.run --input '{"argv":["true"]}'`)
	expect.True(t, code == 0, "its second tenant: exit %d %s", code, stderr)
}

func TestAKeyThatIsTakenAwayEndsItsSessions(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	signer, line := pair(t, 1)
	expect.Fails(t, expect.Fault(d.dial("bob", signer)), "an unknown key was let in")
	u.ok("operator", "set", "bob", "--role", "operator", "--key", line)
	g := d.enter("bob", signer)
	_, _, _ = g.run(`bus publish news.first '{"n":1}'`)
	s := expect.Of(g.client.NewSession())(t)
	told := expect.Of(s.StdoutPipe())(t)
	expect.No(t, s.Start("bus tail --follow"))
	expect.Of(told.Read(make([]byte, 1)))(t)
	ended := make(chan error, 1)
	go func() { ended <- s.Wait() }()
	u.ok("operator", "remove", "bob")
	expect.Fails(t, expect.From(t, ended, "the session goes on"), "the session went on to its end")
	expect.Fails(t, expect.Fault(d.dial("bob", signer)), "a removed key was let in")
}

func TestNothingLeadsToAnotherTenantOrAFileOverSSH(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	u.ok("tenant", "create", "t_beta")
	secret := field(u.ok("--tenant", "t_beta", "session", "create", "--name", "secret", "-o", "json"), "session_id")
	expect.No(t, os.WriteFile(filepath.Join(u.home, "visible.yaml"), []byte("password: xyzzy\n"), 0o600))
	d := u.daemon()
	signer, line := pair(t, 1)
	u.ok("--tenant", "t_acme", "operator", "set", "bob", "--role", "viewer", "--key", line)
	g := d.enter("bob", signer)
	for _, line := range []string{
		"tenant show t_beta",
		"skill check - " + filepath.Join(u.home, "visible.yaml"),
		"session show --tenant t_beta " + secret,
		"__complete --tenant t_beta session show ''",
		"__complete session show --tenant=t_beta ''",
		"__complete tenant show ''",
		"__complete task list --tenant ''",
		"__complete task list --tenant=",
		"__complete task dispatch --input=@" + u.home + "/",
		"__complete --script=" + u.home + "/",
		"__complete --script=@" + u.home + "/",
	} {
		_, out, stderr := g.run(line)
		for _, leak := range []string{secret, "visible", "password", "CREATED", "t_beta\t", "t_beta\n"} {
			if strings.Contains(out, leak) || leak == "password" && strings.Contains(stderr, leak) {
				t.Errorf("%s: %s%s", line, out, stderr)
				break
			}
		}
	}
	code, _, stderr := g.run("tenant show t_beta")
	expect.True(t, code != 0 && strings.Contains(stderr, "your key opens t_acme"), "another tenant: exit %d %s", code, stderr)
	code, out, stderr := g.run("tenant show t_acme")
	expect.True(t, code == 0, "their own tenant: exit %d %s%s", code, out, stderr)
}

func TestAConnectionThatWaitedDoesNotOutliveItsKey(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	u.ok("tenant", "create", "t_beta")
	d := u.daemon()
	signer, line := pair(t, 1)
	for _, tenant := range []string{"t_acme", "t_beta"} {
		u.ok("--tenant", tenant, "operator", "set", "bob", "--role", "operator", "--key", line)
	}
	one, unclear := d.enter("t_acme", signer), d.enter("bob", signer)
	for _, tenant := range []string{"t_acme", "t_beta"} {
		u.ok("--tenant", tenant, "operator", "remove", "bob")
	}
	for _, g := range []*guest{one, unclear} {
		code, out, _ := g.run(`task dispatch --kind exec.run --input '{"argv":["true"]}' -o json`)
		expect.True(t, code != 0 && out == "", "exit %d %s", code, out)
	}
	out := u.ok("--tenant", "t_acme", "task", "list", "-o", "json")
	expect.True(t, !strings.Contains(out, "task_id"), "work was taken: %s", out)
	u.ok("--tenant", "t_acme", "operator", "set", "bob", "--role", "operator", "--key", line)
	code, _, stderr := d.enter("bob", signer).run("task list")
	expect.True(t, code == 0, "the engine afterwards: exit %d %s", code, stderr)
}

// TestTwoOperatorsRaceForTheSameApprovals has each of them answer the same
// 1,000 approvals by a script, the other way round: one answer counts each time,
// and who came too late is told who was first.
func TestTwoOperatorsRaceForTheSameApprovals(t *testing.T) {
	t.Parallel()
	const askers = 4
	races := 1000
	if celltest.Race || testing.Short() {
		races = 100 // 3,000 command lines are more than the race detector does in time
	}
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	asker := d.client(9, "asker", "operator")
	racers := map[string]*client{"ann": d.client(1, "ann", "approver"), "bob": d.client(2, "bob", "approver")}

	var all sync.WaitGroup
	asked := make([]string, askers)
	for i := range askers {
		all.Go(func() {
			var lines strings.Builder
			for n := range races / askers {
				fmt.Fprintf(&lines, `task dispatch --kind exec.run --input '{"argv":["rm","-r","gone-%d-%d"]}' -o json`+"\n", i, n)
			}
			if code, out, stderr := asker.run(lines.String(), ""); code != 0 {
				t.Errorf("exit %d %s", code, stderr)
			} else {
				asked[i] = out
			}
		})
	}
	all.Wait()
	var ids []string
	for _, m := range regexp.MustCompile(`"approval_id":"(ap_\w+)"`).FindAllStringSubmatch(strings.Join(asked, ""), -1) {
		ids = append(ids, m[1])
	}
	slices.Sort(ids)
	expect.Must(t, len(slices.Compact(ids)) == races, "%d approvals wait", len(ids))

	u.ok("estop", "on", "--reason", "a race") // what is approved is not to run: that would only take time
	var mu sync.Mutex
	won, told := map[string]string{}, map[string]string{} // by approval: who answered it, and who the other was told did
	mine := regexp.MustCompile(`(?m)^\{.*"approval_id":"(ap_\w+)".*"answered_by":"(\w+)"`)
	theirs := regexp.MustCompile(`(?m)^\{"error":\{"code":"CONFLICT","message":"approval (ap_\w+): already (?:approved|denied) by (\w+) at`)
	for name, c := range racers {
		all.Go(func() {
			var lines strings.Builder
			for n, id := range ids {
				verb := "approve"
				if (n%2 == 0) == (name == "ann") {
					verb = "deny"
				}
				fmt.Fprintf(&lines, "approval %s %s --reason by-%s -o json\n", verb, id, name)
			}
			_, out, stderr := c.run(lines.String(), "")
			mu.Lock()
			defer mu.Unlock()
			for _, m := range mine.FindAllStringSubmatch(out, -1) {
				expect.True(t, won[m[1]] == "" && m[2] == name, "%s: %s says that %s answered it, and %q did", m[1], name, m[2], won[m[1]])
				won[m[1]] = name
			}
			for _, m := range theirs.FindAllStringSubmatch(stderr, -1) {
				expect.True(t, told[m[1]] == "" && m[2] != name, "%s: %s is told that %s answered it, %q before", m[1], name, m[2], told[m[1]])
				told[m[1]] = m[2]
			}
		})
	}
	all.Wait()
	wins := map[string]int{}
	for _, id := range ids {
		expect.Must(t, won[id] != "" && told[id] == won[id], "%s: answered by %q, the other was told %q", id, won[id], told[id])
		wins[won[id]]++
	}
	t.Logf("%v", wins)
	u.ok("audit", "verify")
}

func TestASwarmFileLetsOperatorsIn(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	_, ann := pair(t, 1)
	_, bob := pair(t, 2)
	write := func(text string) {
		t.Helper()
		expect.No(t, os.WriteFile(filepath.Join(u.home, "swarm.yaml"), []byte(text), 0o600))
	}
	write("tenant: t_acme\noperators:\n  - {name: ann, role: approver, keys: ['" + ann + " ann@home']}\n  - {name: bob, role: viewer, keys: ['" + bob + "']}\n")
	for _, want := range []string{"created", "unchanged"} {
		out := u.ok("up", "swarm.yaml")
		expect.True(t, strings.Count(out, want) >= 2, "want %s:\n%s", want, out)
	}
	out := u.ok("operator", "list")
	expect.True(t, regexp.MustCompile(`ann +approver`).MatchString(out) && regexp.MustCompile(`bob +viewer`).MatchString(out), "%v", out)
	write("operators:\n  - name: ann\n    role: king\n    keys: [nonsense]\n")
	code, _, stderr := u.run("up", "swarm.yaml")
	expect.True(t, code == 1 && strings.Contains(stderr, "swarm.yaml:4"), "exit %d %s", code, stderr)
}

func TestAttachOpensACockpitByTheSystemsSSH(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("ssh is missing")
	}
	u := newUser(t)
	u.ok("tenant", "create", "t_acme")
	d := u.daemon()
	_, line := pair(t, 0)
	u.ok("operator", "set", "bob", "--role", "operator", "--key", line)
	host, port, _ := strings.Cut(d.addr, ":")
	there := u.atTerminal()
	s := there.sit(80, 24, "attach", "bob@"+host, "--port", port, "--", "-q", "-i", keyFile(t, 0), "-o", "IdentitiesOnly=yes",
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null")
	s.see(`fleet`)
	u.ok("task", "dispatch", "--kind", "exec.run", "--input", `{"argv":["echo","over ssh"]}`, "--wait")
	s.press("2")
	s.see(`over ssh`)
	s.resize(120, 40)
	s.until("the whole width", func() bool { return len([]rune(strings.Split(s.screen(), "\n")[1])) == 120 })
	s.press(":write stolen" + enter)
	s.see(`files can't be written`)
	expect.Is(t, s.leaves(), 0, "exit")
}
