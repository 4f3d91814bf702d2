package mcp

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/files"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tools"
	"swarmdeck/expect"
)

// asks dispatches a call that waits for a person.
func (h *house) asks(t *testing.T, path string) task.Task {
	t.Helper()
	tk, err := h.eng.Swarm.Dispatch(t.Context(), core.Caller{Tenant: lab, Name: "Sony", Kind: core.Agent}, swarm.Dispatch{
		Kind: Kind, Input: core.Raw(fmt.Sprintf(`{"server":"actor","tool":"write_file","args":{"path":%q}}`, path)),
	})
	expect.No(t, err)
	return tk
}

// anew waits until a call is asked about once more, allows it, and sees that
// it was not carried out before.
func (h *house) anew(t *testing.T, tk task.Task, first judge.Approval, path string) {
	t.Helper()
	expect.Await(t, "another question", func() bool {
		open, err := h.eng.Judge.Open(t.Context(), lab)
		return err == nil && len(open) == 1 && open[0].ApprovalID != first.ApprovalID
	})
	_, err := os.Stat(path)
	expect.Fails(t, err, "it wrote with a tool that nobody approved")
	again := h.answer(t, "write_file", judge.Answer{Approve: true, Reason: "fine"})
	expect.True(t, again.Digest != first.Digest, "the same digest: %s", again.Action.Args)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tk, err = h.eng.Tasks.Wait(ctx, lab, tk.TaskID, "")
	expect.True(t, err == nil && tk.Status == task.Succeeded, "%+v %v", tk, err)
	expect.Of(os.Stat(path))(t)
}

func TestAnApprovalIsVoidOnceTheToolIsAnother(t *testing.T) {
	for _, change := range []string{"morph", "retell"} { // its schema, and what is said of it alone
		t.Run(change, func(t *testing.T) { voidOnce(t, change) })
	}
}

func voidOnce(t *testing.T, change string) {
	h, c := guests(t)
	path := filepath.Join(h.dir, "written")
	expect.Of(h.eng.Tools.List(t.Context(), lab, "actor"))(t)
	s := expect.Of(h.eng.Tools.Server(t.Context(), lab, "actor"))(t)
	tk := h.asks(t, path)
	now := func() string { _, as := c.tools.tool(s, "write_file"); return as }
	was := now()
	_, r := h.ends(t, alice, "actor", change, "{}")
	expect.Must(t, r.Status == task.Succeeded, "%+v", r.Error)
	expect.Await(t, "the new tool", func() bool { return now() != was })
	first := h.answer(t, "write_file", judge.Answer{Approve: true, Reason: "fine"})
	h.anew(t, tk, first, path)
	a, err := h.eng.Judge.Approval(t.Context(), lab, first.ApprovalID)
	expect.True(t, err == nil && a.Status == judge.Voided, "%+v %v", a, err)
}

// TestACallerMayLeaveAServerThatBegins: others wait for it, each as long as it
// likes.
func TestACallerMayLeaveAServerThatBegins(t *testing.T) {
	h, c := guests(t)
	h.know(t, tools.Server{Name: "mute", Command: []string{"sleep", "1000"}})
	ctx, cancel := context.WithCancel(t.Context())
	first := expect.Later(func() error {
		_, err := h.eng.Tools.List(ctx, lab, "mute")
		return err
	})
	var l *link
	expect.Await(t, "the server to begin", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		l = c.links[lab+"/mute"]
		return l != nil && len(l.turn) == 1
	})
	left, leave := context.WithCancel(t.Context())
	leave()
	_, _, err := l.use(left)
	expect.Err(t, err, context.Canceled, "it left with")
	cancel()
	expect.Fails(t, <-first, "a mute server began")
}

// TestAToolThatChangedUnseenIsNotCalled: the server is another program by the
// time that it begins anew.
func TestAToolThatChangedUnseenIsNotCalled(t *testing.T) {
	h, c := guests(t)
	path := filepath.Join(h.dir, "written")
	schema := filepath.Join(t.TempDir(), "required")
	expect.No(t, os.WriteFile(schema, nil, 0o600))
	self := expect.Of(os.Executable())(t)
	h.know(t, tools.Server{
		Places: files.Places{Write: []string{h.dir}},
		Name:   "actor", Command: []string{"sh", "-c", `REQUIRED=$(cat "$1") exec "$0"`, self, schema}, Env: map[string]string{"MCP_TEST_SERVER": "1"},
	})
	expect.Of(h.eng.Tools.List(t.Context(), lab, "actor"))(t)
	task := h.asks(t, path)
	expect.No(t, os.WriteFile(schema, []byte("path"), 0o600))
	c.mu.Lock()
	l := c.links[lab+"/actor"]
	c.mu.Unlock()
	l.mu.Lock()
	pid := l.proc.PID()
	l.mu.Unlock()
	expect.No(t, syscall.Kill(pid, syscall.SIGKILL))
	expect.Await(t, "the end of the server", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.session == nil
	})
	first := h.answer(t, "write_file", judge.Answer{Approve: true, Reason: "fine"})
	h.anew(t, task, first, path)
}

func TestWhatAToolWasIsKnownAfterARestart(t *testing.T) {
	dir := t.TempDir()
	s := tools.Server{TenantID: lab, Name: "a", Command: []string{"x"}}
	list := []tools.Tool{{Name: "one", Digest: "d1", ReadOnly: true}}
	as := func(d *definitions, s tools.Server) string { _, as := d.tool(s, "one"); return as }
	reads := func(d *definitions, s tools.Server) bool { k, _ := d.tool(s, "one"); return k.reads() }
	first := &definitions{state: dir}
	before := as(first, s)
	expect.No(t, first.learn(s, list))
	known := as(first, s)
	again := as(&definitions{state: dir}, s)
	expect.True(t, again == known && known != before, "%s, then %s, before that was known %s", known, again, before)
	err := first.approve(s, "one", before)
	expect.True(t, err == nil && !reads(first, s), "what was approved before it was known reads: %v", err)
	err = first.approve(s, "one", known)
	expect.True(t, err == nil && reads(first, s) && reads(&definitions{state: dir}, s), "an approval is not known after a restart: %v", err)
	changed := s
	changed.Command = []string{"y"}
	expect.True(t, as(first, changed) != known && !reads(first, changed), "the tool of another command is the same")
	list[0].Digest = "d2"
	err = first.learn(s, list)
	expect.True(t, err == nil && as(first, s) != known && !reads(first, s), "the tool of which something else is said is the same: %v", err)
	err = first.approve(s, "one", known)
	expect.True(t, err == nil && !reads(first, s), "an approval of what it was reads: %v", err)
	err = first.approve(s, "one", as(first, s))
	expect.True(t, err == nil && reads(first, s), "it was approved anew: %v", err)
	for range 2 { // to another command, and back
		s, changed = changed, s
		err := first.learn(s, list)
		expect.True(t, err == nil && !reads(first, s), "an approval outlived the command of its server: %v", err)
	}
	for _, bad := range []string{"", "{", `{"tools":7}`} {
		expect.No(t, os.WriteFile(first.path(lab, "a"), []byte(bad), 0o600))
		expect.Is(t, as(&definitions{state: dir}, s), before, bad)
	}
}
