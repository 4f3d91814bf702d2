package policy

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// rounds is how often each hostile program is run: POLICY_ROUNDS=1000 does it
// a thousand times over.
func rounds() int {
	if n, err := strconv.Atoi(os.Getenv("POLICY_ROUNDS")); err == nil && n > 0 {
		return n
	}
	return 2
}

// attacked runs every attack against a runner, again and again, and then looks
// for what any of them left behind. A program that stays ends in other ways
// than one that is run once, so its reason is any of a fault's.
func attacked(t *testing.T, stays bool) {
	need(t, python)
	r := jailedRunner(t)
	r.opt.Deadline = 700 * time.Millisecond
	dir, mark := t.TempDir(), strconv.Itoa(os.Getpid())
	listener := filepath.Join(dir, "door")
	door := expect.Of(net.Listen("unix", listener))(t)
	defer door.Close()
	secret, target := filepath.Join(dir, "secret"), filepath.Join(dir, "target")
	expect.No(t, os.WriteFile(secret, []byte("secret"), 0o666))
	before := holdings(t)
	var late atomic.Int64
	t.Run("all", func(t *testing.T) {
		for name, a := range hostile(listener, secret, target, mark) {
			if stays && (name == "two answers" || name == "answers for ever") {
				continue // its first answer may be one
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := program(a.interpreter, a.source)
				p.Serve = stays
				for range rounds() {
					got := r.Decide(context.Background(), p, []byte(`{"schema":1}`))
					expect.Must(t, got.Decision == "hitl" && got.Fault && !got.Unsandboxed && *got.Confidence == 0, "got %+v", got)
					switch {
					case got.ReasonCode == a.want:
					case got.ReasonCode == judge.ReasonTimeout: // a loaded machine starts an interpreter too late
						late.Add(1)
					case !stays:
						t.Fatalf("reason %s (%s; %s), want %s", got.ReasonCode, got.Rationale, got.Stderr, a.want)
					}
					r.Release(p) // it rests longer and longer otherwise
				}
			})
		}
	})
	t.Logf("%d answers came too late", late.Load())
	expect.Fails(t, expect.Fault(os.Stat(target)), "a program wrote a file")
	b, _ := os.ReadFile(secret)
	expect.True(t, string(b) == "secret", "a program changed a file")
	left, _ := filepath.Glob(filepath.Join(r.dir, "draft-*"))
	expect.True(t, len(left) == 0, "left files: %v", left)
	own := r.dir
	expect.No(t, r.Close())
	expect.Fails(t, expect.Fault(os.Stat(own)), "the programs' directory is still there")
	nothingLeft(t, before, own, "600."+mark)
}

func TestHostileProgramsAlwaysAskAPerson(t *testing.T) { attacked(t, false) }

func TestHostileProgramsThatStayAlwaysAskAPerson(t *testing.T) { attacked(t, true) }

func TestHostileProgramsAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user; the other tests run as an ordinary one already")
	}
	limit := time.Minute
	if end, ok := t.Deadline(); ok {
		limit = time.Until(end) * 9 / 10
	}
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	cmd := exec.CommandContext(ctx, "/proc/self/exe", "-test.run", "TestHostileProgramsAlwaysAskAPerson|TestHostileProgramsThatStay|TestAGoodProgramDecides", "-test.v", "-test.timeout", limit.String())
	cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=/tmp", "HOME=/", "POLICY_ROUNDS=" + os.Getenv("POLICY_ROUNDS"), ownInit + "=/proc/self/exe"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestHostileProgramsAlwaysAskAPerson") {
		if strings.Contains(string(out), "this system can't jail") {
			t.Skip("an ordinary user can't jail here")
		}
		t.Fatalf("%v\n%s", err, out)
	}
}
