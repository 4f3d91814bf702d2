package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/expect"
	"swarmdeck/ui/door/socket"
)

// servers are the processes of an engine's MCP servers, by /proc.
func (u *user) servers() (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/environ")
	mark := cell.Marker + "=" + socket.Instance(u.data()+".run") + "/mcp-"
	for _, name := range names {
		environ, err := os.ReadFile(name) // gone meanwhile, or another user's
		if err != nil || !strings.Contains("\x00"+string(environ), "\x00"+mark) {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		pids = append(pids, pid)
	}
	return pids
}

func TestAKilledEngineLeavesNoRealServerBehind(t *testing.T) {
	t.Parallel()
	installed := drivertest.InstalledMCP(t)
	u := newUser(t)
	bin := filepath.Join(installed, "node_modules", ".bin")
	path := "PATH=" + bin + ":" + os.Getenv("PATH")
	expect.No(t, os.WriteFile(filepath.Join(u.home, "a.txt"), []byte("hello"), 0o600))
	u.ok("mcp", "add", "filesystem", "--env", path, "--", filepath.Join(bin, "mcp-server-filesystem"), u.home)
	u.ok("mcp", "add", "everything", "--env", path, "--", filepath.Join(bin, "mcp-server-everything"))
	read := []string{"task", "dispatch", "--kind", "mcp.call", "--wait", "-o", "json", "--input", fmt.Sprintf(`{"server":"filesystem","tool":"read_text_file","args":{"path":%q}}`, filepath.Join(u.home, "a.txt"))}

	// One server is idle and one works when the engine is killed.
	script := filepath.Join(u.home, "work.txtar")
	expect.No(t, os.WriteFile(script, []byte("mcp tools filesystem\n"+
		`task dispatch --kind mcp.call --max-attempts 0 --wait --input '{"server":"everything","tool":"trigger-long-running-operation","args":{"duration":120,"steps":1}}'`+"\n"), 0o600))
	cmd := u.command("--script", script, "--data", u.data())
	expect.No(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	expect.Await(t, "two servers", func() bool { return len(u.servers()) >= 2 })
	expect.Await(t, "the call, which takes two minutes", func() bool { return field(u.ok("task", "list", "-o", "json"), "status") == "running" })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	// They stand still until the next engine ends them.

	id := field(u.ok("task", "list", "-o", "json"), "task_id")
	code, _, stderr := u.run("task", "wait", id, "--timeout", "2s")
	expect.True(t, code == 4 && strings.Contains(stderr, "a person must answer"), "the call that was cut: exit %d %s", code, stderr)
	u.ok("approval", "deny", field(u.ok("approval", "list", "--open", "-o", "json"), "approval_id"), "--reason", "it may have been made")
	out := u.ok("task", "wait", id, "--timeout", patience.String(), "-o", "json", "--status", "blocked")
	expect.True(t, field(out, "status") == "blocked", "the call that was cut: %s", out)
	out = u.ok(read...)
	expect.True(t, field(out, "status") == "succeeded", "%s", out)
	pids := u.servers()
	expect.True(t, len(pids) == 0, "servers that outlive their engine: %v", pids)
	u.ok("audit", "verify")
	u.ok("audit", "reconcile")
	u.ok("store", "check")
}
