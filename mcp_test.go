package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"swarmdeck/drivers/drivertest"
)

// inspector runs the official inspector and returns its exit code and what it
// printed on stdout.
func inspector(t *testing.T, u *user, installed string, args ...string) (code int, stdout string) {
	t.Helper()
	bin := filepath.Join(installed, "node_modules", ".bin")
	cmd := exec.Command(filepath.Join(bin, "mcp-inspector"), append([]string{"--cli"}, args...)...)
	cmd.Dir = u.home
	cmd.Env = append(slices.Clone(u.env), "HOME="+u.home, "PATH="+bin+":"+os.Getenv("PATH"))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		t.Logf("inspector %s: exit code %d: %s", strings.Join(args, " "), exit.ExitCode(), errs.String())
		return exit.ExitCode(), out.String()
	}
	return 0, out.String()
}

// calls are one good call of each tool. Those that end work wait for a person:
// the policy's approve them nowhere, so they are called for what is not there.
var calls = [][]string{
	{"list_agents"},
	{"show_agent", "agent_name=Sony"},
	{"list_agent_projects"},
	{"list_agent_roles", "project=P"},
	{"create_agent", "name=Papi", "project=P", "task=wait"},
	{"start_agent_task", "agent_name=Sony", "task=wait"},
	{"show_agent_task_history", "agent_name=Sony"},
	{"show_agent_log", "agent_name=Sony"},
	{"dispatch_task", "kind=exec.run", `input={"argv":["true"]}`, "wait_s=10"},
	{"list_tasks"},
	{"list_approvals"},
	{"publish_message", "topic=a.b", `payload={"n":1}`},
	{"send_message", "recipient_id=Sony", `payload={"n":1}`},
	{"read_messages"},
	{"list_skills"},
	{"show_skill", "skill=echo"},
	{"invoke_skill", "skill=echo", `params={"text":"hi"}`, "wait_s=10"},
}

// listed are the names of the tools in what the inspector printed.
func listed(t *testing.T, printed string) []string {
	t.Helper()
	var list struct {
		Tools []struct {
			Name        string         `json:"name"`
			InputSchema map[string]any `json:"inputSchema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal([]byte(printed), &list); err != nil {
		t.Fatalf("%v in %s", err, printed)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	return names
}

func TestTheInspectorListsAndCallsEveryTool(t *testing.T) {
	installed := drivertest.InstalledMCP(t)
	u := newPlayer(t)
	u.ok("agent", "create", "Sony", "--project", "P", "--role", "coder", "--", "cat")
	program := filepath.Join(u.home, "swarmdeck")

	tokens := filepath.Join(u.home, "tokens.yaml")
	if err := os.WriteFile(tokens, []byte("tokens: [{operator: alice, role: operator, token: the-token-of-alice}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdio := []string{program, "mcp"}
	var all []string
	for _, era := range []string{"legacy", "auto", "modern"} {
		code, printed := inspector(t, u, installed, append(stdio, "--protocol-era", era, "--method", "tools/list")...)
		if names := listed(t, printed); code != 0 || len(names) != 24 || all != nil && !slices.Equal(names, all) {
			t.Errorf("%s over stdio: exit code %d, %v", era, code, names)
		} else {
			all = names
		}
	}
	if code, printed := inspector(t, u, installed, append(stdio, "--strict", "--method", "tools/list")...); code != 0 || strings.Contains(printed, "Warning: ") {
		t.Errorf("the schemas are not portable: exit code %d: %s", code, printed)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	server := u.command("mcp", "--http", addr, "--tokens", tokens)
	var said bytes.Buffer
	server.Stderr = &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = server.Process.Signal(os.Interrupt)
		_ = server.Wait()
	}()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not listen: " + said.String())
		}
	}
	url := "http://" + addr + "/mcp"
	good := []string{url, "--transport", "http", "--header", "Authorization: Bearer the-token-of-alice"}
	for _, era := range []string{"legacy", "auto", "modern"} {
		code, printed := inspector(t, u, installed, append(slices.Clone(good), "--protocol-era", era, "--method", "tools/list")...)
		if names := listed(t, printed); code != 0 || !slices.Equal(names, all) {
			t.Errorf("%s over HTTP: exit code %d, %v", era, code, names)
		}
	}
	for _, call := range calls {
		args := append(slices.Clone(good), "--method", "tools/call", "--tool-name", call[0])
		for _, arg := range call[1:] {
			args = append(args, "--tool-arg", arg)
		}
		if code, printed := inspector(t, u, installed, args...); code != 0 {
			t.Errorf("%s: exit code %d: %s", call[0], code, printed)
		}
	}
	for _, refused := range [][]string{
		{"--method", "tools/call", "--tool-name", "show_agent", "--tool-arg", "agent_name=Nobody"},
		{"--method", "tools/call", "--tool-name", "show_task", "--tool-arg", "task_id=x"},
		{"--method", "tools/call", "--tool-name", "why_task", "--tool-arg", "task_id=x"},
		{"--method", "tools/call", "--tool-name", "show_approval", "--tool-arg", "approval_id=x"},
		{"--method", "tools/call", "--tool-name", "delete_agent", "--tool-arg", "agent_name=no good name"},
		{"--method", "tools/call", "--tool-name", "list_tasks", "--tool-arg", "page=0"},
	} {
		if code, printed := inspector(t, u, installed, append(slices.Clone(good), refused...)...); code != 5 {
			t.Errorf("%v: exit code %d: %s", refused, code, printed)
		}
	}
	code, printed := inspector(t, u, installed, append(slices.Clone(good), "--method", "resources/read", "--uri", "resource://approval-policy/policy.json")...)
	if code != 0 || !strings.Contains(printed, "own.agent") {
		t.Errorf("the policy: exit code %d: %s", code, printed)
	}
	if code, _ := inspector(t, u, installed, url, "--transport", "http", "--header", "Authorization: Bearer wrong", "--method", "tools/list"); code == 0 {
		t.Error("a wrong token was taken")
	}
}
