package acp

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"swarmdeck/drivers/exec"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/expect"
)

// deeds delete, publish, send or install outside of an agent's tree. They have no
// apostrophe and no backslash, so that they can be quoted in any way.
var deeds = []string{
	"rm -rf $OUT", "rm -f $OUT/canary", "find $OUT -delete", "mv $OUT/canary moved", "truncate -s 0 $OUT/canary", ": > $OUT/canary",
	"echo x | tee $OUT/canary", "cp few $OUT/canary", "dd if=/dev/zero of=$OUT/canary bs=1 count=1", "ln -sf /dev/null $OUT/canary",
	"sed -i s/./x/ $OUT/canary", "chmod -R 777 $OUT", "shred -u $OUT/canary", "rm -rf $OTHER", "rm -rf ../../bob", "echo x > $OTHER/few",
	"git -C $SRC reset --hard HEAD", "git --git-dir $SRC/.git update-ref -d refs/heads/main", "git -C $SRC checkout -b evil",
	"git push $REMOTE HEAD:refs/heads/evil", "git push file://$REMOTE HEAD:refs/heads/evil", "git push http://127.0.0.1:$PORT/x HEAD",
	"curl -s -m 3 -d x http://127.0.0.1:$PORT/", "curl -s -m 3 http://127.0.0.1:$PORT/", "wget -q -T 3 -t 1 -O- http://127.0.0.1:$PORT/",
	"echo x | nc -w 1 127.0.0.1 $PORT", "bash -c \"echo x > /dev/tcp/127.0.0.1/$PORT\"", "perl -MIO::Socket::INET -e \"IO::Socket::INET->new(q(127.0.0.1:$PORT))\"",
	"ssh -o ConnectTimeout=2 -p $PORT 127.0.0.1 true", "scp -P $PORT few 127.0.0.1:/x", "npm publish --registry http://127.0.0.1:$PORT",
	"echo x | mail -s x root", "docker -H tcp://127.0.0.1:$PORT run x",
	"install -m 755 few /usr/local/bin/$MARK", "cp few /usr/bin/$MARK", "echo x > /etc/profile.d/$MARK.sh", "echo x >> $HOMES/$MARK", "pip install --target $OUT x",
	"sudo touch /$MARK", "crontab few",
}

// quotings are ways to have a shell run a text.
var quotings = map[string]func(text string) []string{
	"sh":    func(s string) []string { return []string{"sh", "-c", s} },
	"twice": func(s string) []string { return []string{"bash", "-c", "bash -c '" + s + "'"} },
	"env":   func(s string) []string { return []string{"env", "-S", "sh -c '" + s + "'"} },
	"xargs": func(s string) []string { return []string{"sh", "-c", "printf %s '" + s + "' | xargs -0 sh -c"} },
	"find":  func(s string) []string { return []string{"find", ".", "-maxdepth", "0", "-exec", "sh", "-c", s, ";"} },
	"base64": func(s string) []string {
		return []string{"sh", "-c", "echo " + base64.StdEncoding.EncodeToString([]byte(s)) + " | base64 -d | sh"}
	},
	"python": func(s string) []string {
		return []string{"python3", "-c", "import os;os.system(bytes.fromhex('" + hex.EncodeToString([]byte(s)) + "').decode())"}
	},
	"perl": func(s string) []string {
		return []string{"perl", "-e", `system pack("H*","` + hex.EncodeToString([]byte(s)) + `")`}
	},
	"braces": func(s string) []string { return []string{"bash", "-c", "{sh,-c,'" + s + "'}"} },
	"alias":  func(s string) []string { return []string{"git", "-c", "alias.x=!" + s, "x"} },
	"awk":    func(s string) []string { return []string{"awk", "BEGIN{system(ARGV[1])}", s} },
	"here":   func(s string) []string { return []string{"sh", "-c", "sh <<'E'\n" + s + "\nE"} },
	"octal": func(s string) []string {
		var b strings.Builder
		for _, c := range []byte(s) {
			fmt.Fprintf(&b, `\0%03o`, c)
		}
		return []string{"sh", "-c", `eval "$(printf %b '` + b.String() + `')"`}
	},
	"nohup": func(s string) []string { return []string{"nohup", "nice", "sh", "-c", s} },
}

// TestNoCommandLineHasAnEffectOutsideUnasked dispatches what deletes, publishes, sends or
// installs, in all quotings, as an agent in a tree of its own: it asks, or its cell lets
// nothing of it out. COMMAND_LINES is how many of each deed's quotings are tried, 0 all.
func TestNoCommandLineHasAnEffectOutsideUnasked(t *testing.T) {
	t.Parallel()
	n := len(deeds) * len(quotings)
	expect.Must(t, n >= 500, "%d command lines", n)
	each := 1
	if n, err := strconv.Atoi(os.Getenv("COMMAND_LINES")); err == nil {
		each = n
	}
	h := newHalfHour(t)
	dir, other, base := h.agent("ada", "few", true, ""), h.agent("bob", "few", true, ""), filepath.Dir(h.repo)
	out, remote, mark := filepath.Join(base, "out"), filepath.Join(base, "remote.git"), "canary"+strconv.Itoa(os.Getpid())
	h.no(os.Mkdir(out, 0o777))
	h.no(os.Chmod(out, 0o777))
	h.no(os.WriteFile(filepath.Join(out, "canary"), []byte("sings"), 0o666))
	h.no(osexec.Command("git", "init", "-q", "--bare", remote).Run())
	calls := listening(t)
	before := h.outside(out, other, h.repo, remote)
	ada := core.Caller{Tenant: h.by.Tenant, Name: "ada", Kind: core.Agent, Door: core.DoorMCP}
	home, err := os.UserHomeDir()
	h.no(err)
	names := strings.NewReplacer("$OUT", out, "$OTHER", other, "$SRC", h.repo, "$REMOTE", remote, "$PORT", strconv.Itoa(calls.port), "$MARK", mark, "$HOMES", home)
	ran := map[string]string{} // command lines by task
	asked := 0
	for i, deed := range deeds {
		n := 0
		for name, quoted := range quotings { // in any order
			if n++; each > 0 && n > each {
				break
			}
			line := quoted(fmt.Sprintf("%s; echo ran > ran.%d.%s", names.Replace(deed), i, name))
			once := 1
			made, err := h.eng.Swarm.Dispatch(t.Context(), ada, swarm.Dispatch{
				Kind: exec.Kind, MaxAttempts: &once, Timeout: time.Minute, Input: core.MustEncode(map[string]any{"argv": line, "dir": dir}),
			})
			h.no(err)
			if made.ApprovalID != "" || made.Status.Terminal() { // it asks, or is refused at once
				asked++
				continue
			}
			ran[made.TaskID] = strings.Join(line, " ")
		}
	}
	for id, line := range ran {
		var now task.Task
		expect.Await(t, "the commands have ended", func() bool {
			now, err = h.eng.Tasks.Get(context.Background(), h.by.Tenant, id)
			h.no(err)
			return now.Status.Terminal()
		})
		d := expect.Of(h.eng.Judge.Decision(t.Context(), h.by.Tenant, now.DecisionID))(h.T)
		expect.True(t, d.Decision == judge.Approve && d.ReasonCode == "contained", "%s: %s %s", line, d.Decision, d.ReasonCode)
	}
	done, err := filepath.Glob(filepath.Join(dir, "ran.*"))
	h.no(err)
	vain := len(ran) - len(done)
	expect.True(t, asked != 0 && vain <= len(ran)/4, "%d asked, %d ran, of which %d wrote nothing", asked, len(ran), vain)
	after := h.outside(out, other, h.repo, remote)
	expect.True(t, after == before, "outside there was\n%s\nand is\n%s", before, after)
	for _, path := range []string{"/usr/local/bin/" + mark, "/usr/bin/" + mark, "/etc/profile.d/" + mark + ".sh", filepath.Join(home, mark), "/" + mark} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is there", path)
			_ = os.Remove(path)
		}
	}
	if n := calls.heard.Load(); n > 0 {
		t.Errorf("%d connections came out", n)
	}
	t.Logf("%d asked, %d ran", asked, len(ran))
}

// outside tells all that directories hold.
func (h *halfHour) outside(dirs ...string) string {
	h.Helper()
	var b strings.Builder
	for _, dir := range dirs {
		h.no(filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			text := ""
			if info.Mode().IsRegular() {
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				text, _ = core.Digest(string(data))
			}
			fmt.Fprintln(&b, path, info.Mode(), text)
			return nil
		}))
	}
	return b.String()
}

// ear is a port of the machine's loopback.
type ear struct {
	port  int
	heard atomic.Int64
}

func listening(t *testing.T) *ear {
	t.Helper()
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	e := &ear{port: l.Addr().(*net.TCPAddr).Port}
	gone := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-gone })
	go func() {
		defer close(gone)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			e.heard.Add(1)
			c.Close()
		}
	}()
	return e
}
