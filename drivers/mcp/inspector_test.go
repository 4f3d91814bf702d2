package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"swarmdeck/drivers/builtin"
	"swarmdeck/drivers/cell"
	"swarmdeck/drivers/drivertest"
	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

// goodCall is a call of a tool that is to succeed, but where a person was faster.
type goodCall struct {
	tool string
	args []string // $field stands for what an earlier result had there
	want string   // in the result
	keep string   // field of the result that later calls name
	late bool     // a person was faster: it is refused, and want is why
}

// goodCalls has every tool, each with all that it needs.
var goodCalls = []goodCall{
	{tool: "list_agents", args: []string{"project_filter=P"}, want: `"name":"Sony"`},
	{tool: "show_agent", args: []string{"agent_name=Sony"}, want: `"status":"idle"`},
	{tool: "list_agent_projects", want: `"name":"P"`},
	{tool: "list_agent_roles", args: []string{"project=P"}, want: `"name":"coder"`},
	{tool: "create_agent", args: []string{"name=Nova", "project=P", "task=wait"}, want: `created agent Nova`},
	{tool: "start_agent_task", args: []string{"agent_name=Sony", "task=wait", "uri=file:///a"}, want: `"agent":"Sony"`},
	{tool: "show_agent_task_history", args: []string{"agent_name=Sony"}, want: `"uri":"file:///a"`},
	{tool: "show_agent_log", args: []string{"agent_name=Sony", "page_size=5"}, want: `"logs":[`},
	{tool: "cancel_agent_task", args: []string{"agent_name=Sony"}, want: `cancelled the task of agent Sony`},
	{tool: "restart_agent", args: []string{"agent_name=Sony"}, want: `restarted agent Sony`},
	{tool: "delete_agent", args: []string{"agent_name=Nova"}, want: `deleted agent Nova`},
	{tool: "dispatch_task", args: []string{"kind=exec.run", `input={"argv":["sleep","60"]}`, "intent=rest"}, want: `"kind":"exec.run"`, keep: "task_id"},
	{tool: "list_tasks", args: []string{"kind=exec.run"}, want: `"total_count":1`},
	{tool: "show_task", args: []string{"task_id=$task_id"}, want: `"argv":["sleep","60"]`},
	{tool: "why_task", args: []string{"task_id=$task_id"}, want: `"task_id":"$task_id"`},
	{tool: "tell_story", args: []string{"agent_name=Sony", "page_size=5"}, want: `"what":"turn"`},
	{tool: "cancel_task", args: []string{"task_id=$task_id", "reason=enough"}, want: `cancelled task`},
	{tool: "list_approvals", args: []string{"status=approved"}, want: `"tool":"cancel_task"`, keep: "approval_id"},
	{tool: "show_approval", args: []string{"approval_id=$approval_id"}, want: `"answered_by":"olga"`},
	{tool: "request_grant", args: []string{"server=swarmdeck", "tool=send_message", "agent_name=Sony", "any=*", "expires_s=60", "max_uses=1", "reason=tests"}, want: `let agent Sony call swarmdeck/send_message with any arguments up to 1 time`},
	{tool: "reply_approval", args: []string{"approval_id=$approval_id", "text=because"}, want: `already approved by olga`, late: true},
	{tool: "withdraw_approval", args: []string{"approval_id=$approval_id"}, want: `already approved by olga`, late: true},
	{tool: "list_grants", args: []string{"agent_name=Sony"}, want: `"grants":[`},
	{tool: "propose_policy", args: []string{"kind=rules", "source=" + tinyPolicy, "tests=" + tinyCase}, want: `"status":"proposal"`, keep: "policy_id"},
	{tool: "list_policies", args: []string{"status=proposal"}, want: `"policy_id":"$policy_id"`},
	{tool: "show_policy", args: []string{"policy_id=$policy_id"}, want: `"tests":"{\"name\"`},
	{tool: "test_policy", args: []string{"policy_id=$policy_id"}, want: `"passed":2`},
	{tool: "backtest_policy", args: []string{"policy_id=$policy_id", "last=100"}, want: `"groups":[`},
	{tool: "decide_policy", args: []string{`input={"name":"swarmdeck_list_agents","arguments":{}}`}, want: `"rule_id":"own.read-only"`},
	{tool: "withdraw_policy", args: []string{"policy_id=$policy_id"}, want: `"status":"withdrawn"`},
	{tool: "publish_message", args: []string{"topic=a.b", `payload={"n":1}`}, want: `"topic":"a.b"`},
	{tool: "send_message", args: []string{"recipient_id=system", `payload={"n":2}`, "priority=1"}, want: `"recipient_id":"system"`},
	{tool: "read_messages", args: []string{"limit=5"}, want: `"payload":{"n":2}`},
	{tool: "list_skills", args: []string{"match=echo"}, want: `"name":"echo"`},
	{tool: "show_skill", args: []string{"skill=echo"}, want: `"parameters_schema":{`},
	{tool: "invoke_skill", args: []string{"skill=echo", `params={"text":"hi"}`, "wait_s=10"}, want: `"text":"hi"`},
	{tool: "cad_operation", args: []string{"agent_id=ann", "method=agent.metrics", "params={}"}, want: `"success_rate":`},
	{tool: "cad_agents", args: []string{"role=modeler"}, want: `"operation_count":1`},
	{tool: "cad_workspaces", args: []string{"match=ann"}, want: `"workspace_id":"ws_ann"`},
}

// inspected is a house that the inspector reaches by stdio and HTTP.
type inspected struct {
	*house
	drivertest.Inspector
	targets [2][]string // how the inspector finds it
}

// inspect makes such a house, with a person who approves all that is asked.
func inspect(t *testing.T) inspected {
	h := newHouse(t, func(opt *engine.Options, _ *cell.Supervisor) {
		opt.Static, opt.SkillRunners[builtin.Kind] = builtin.Definitions(), builtin.New(builtin.Options{})
	})
	h.approveAll(t)
	h.modeler(t, lab, "ann")
	tokens := &Tokens{}
	token := expect.Of(tokens.Issue(person))(t)
	return inspected{h, drivertest.NewInspector(t), [2][]string{
		h.pipe(t, func(ctx context.Context, c net.Conn) error { return h.srv.Stdio(ctx, person, c, onlyWriter{c}) }),
		{h.web(t, tokens), "--transport", "http", "--header", "Authorization: Bearer " + token},
	}}
}

// onlyWriter is not closed with its connection, which the reader closes.
type onlyWriter struct{ io.Writer }

func (onlyWriter) Close() error { return nil }

// pipe is a command whose stdin and stdout serve gets, once per start: a shell,
// which starts sooner than this test would.
func (h *house) pipe(t *testing.T, serve func(context.Context, net.Conn) error) []string {
	t.Helper()
	l := expect.Of(net.Listen("tcp", "127.0.0.1:0"))(t)
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				if err := serve(ctx, c); err != nil {
					t.Logf("the server ended: %v", err)
				}
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = l.Close()
		all.Wait()
	})
	_, port, _ := net.SplitHostPort(l.Addr().String())
	script := filepath.Join(t.TempDir(), "pipe")
	text := "#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/" + port + "\ncat <&3 &\ncat >&3\nkill $!\n"
	expect.No(t, os.WriteFile(script, []byte(text), 0o700))
	return []string{script, "--transport", "stdio"}
}

// approveAll has a person approve whatever is asked, until the test ends.
func (h *house) approveAll(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	bell := h.eng.Watch(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		by := alice
		by.Name = "olga"
		for range bell {
			open, _ := h.eng.Judge.Open(ctx, lab)
			for _, a := range open {
				_, _ = h.eng.Judge.Answer(ctx, by, a.ApprovalID, judge.Answer{Approve: true, Reason: "fine"})
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// call calls a tool of a target, and returns the exit code and the result's JSON.
func (i inspected) call(t *testing.T, target []string, tool string, args ...string) (code int, result string) {
	t.Helper()
	run := append(slices.Clone(target), "--method", "tools/call", "--tool-name", tool)
	for _, arg := range args {
		run = append(run, "--tool-arg", arg)
	}
	code, printed := i.Run(run...)
	var r struct {
		StructuredContent json.RawMessage
		Content           []struct{ Text string }
	}
	if err := json.Unmarshal([]byte(printed), &r); err != nil {
		return code, printed
	}
	if r.StructuredContent == nil && len(r.Content) > 0 {
		return code, r.Content[0].Text
	}
	var plain bytes.Buffer
	expect.No(t, json.Compact(&plain, r.StructuredContent))
	return code, plain.String()
}

// TestTheInspectorCallsEveryTool takes stdio and HTTP by turns: each call starts
// the inspector anew.
func TestTheInspectorCallsEveryTool(t *testing.T) {
	i := inspect(t)
	kept := []string{}
	var called []string
	for n, c := range goodCalls {
		fill := strings.NewReplacer(kept...)
		var args []string
		for _, arg := range c.args {
			args = append(args, fill.Replace(arg))
		}
		code, result := i.call(t, i.targets[n%2], c.tool, args...)
		wanted := 0
		if c.late {
			wanted = 5
		}
		want := fill.Replace(c.want)
		expect.True(t, code == wanted && strings.Contains(result, want), "%s %q: exit code %d, no %s in %s", c.tool, args, code, want, result)
		if c.keep != "" {
			_, rest, _ := strings.Cut(result, `"`+c.keep+`":"`)
			value, _, _ := strings.Cut(rest, `"`)
			kept = append(kept, "$"+c.keep, value)
		}
		called = append(called, c.tool)
		expect.True(t, has(i.events(t, lab, "tool.requested"), fmt.Sprintf(`"tool":%q`, c.tool)), "%s: no decision is in the log", c.tool)
	}
	for _, tool := range i.srv.order {
		expect.True(t, slices.Contains(called, tool.name), "%s was not called", tool.name)
	}
	bad := i.events(t, lab, "mcp.refused")
	expect.True(t, len(bad) == 0, "refused: %v", bad)
}

// TestTheInspectorIsRefusedWhatItMayNot has one call of each sort that is
// refused; which arguments are is tested without the inspector.
func TestTheInspectorIsRefusedWhatItMayNot(t *testing.T) {
	i := inspect(t)
	for n, name := range []string{"stdio", "http"} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				tool string
				args []string
				code core.Code
				said string // by the error
				log  string // event that tells
			}{
				{"show_agent", nil, core.InvalidInput, "agent_name: missing", "mcp.refused"},
				{"dispatch_task", []string{"kind=exec.run", "input=[1]"}, core.InvalidInput, "input: want object, got array", "mcp.refused"},
				{"start_agent_task", []string{"agent_name=Sony", "task=" + strings.Repeat("x", 100_001)}, core.InvalidInput, "task", "mcp.refused"},
				{"show_agent", []string{"agent_name=Papi"}, core.Denied, "belongs to another tenant", "tenant.violation"},
				{"start_agent_task", []string{"agent_name=Papi", "task=x"}, core.Denied, "belongs to another tenant", "tenant.violation"},
				{"show_agent", []string{"agent_name=Nobody"}, core.NotFound, "Nobody", ""},
			} {
				before := len(i.events(t, lab, c.log))
				code, result := i.call(t, i.targets[n], c.tool, c.args...)
				expect.True(t, code == 5 && strings.Contains(result, string(c.code)) && strings.Contains(result, c.said),
					"%s %.80q: exit code %d, %.300s", c.tool, c.args, code, result)
				expect.True(t, c.log == "" || len(i.events(t, lab, c.log)) == before+1, "%s %.80q: %s is not in the log", c.tool, c.args, c.log)
			}
		})
	}
}
