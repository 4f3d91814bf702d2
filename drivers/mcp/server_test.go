package mcp

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/op"
	"swarmdeck/expect"
)

func TestTheToolsAreTheSameInEachEra(t *testing.T) {
	h := newHouse(t)
	var first string
	for _, era := range eras {
		cs := h.stdio(t, person, era, nil)
		list := expect.Of(cs.ListTools(t.Context(), nil))(t)
		var names []string
		for _, tool := range list.Tools {
			names = append(names, tool.Name)
			for _, schema := range []any{tool.InputSchema, tool.OutputSchema} {
				data := string(core.MustEncode(schema))
				if strings.Contains(data, `"null"`) || !strings.HasPrefix(data, "{") || !strings.Contains(data, `"type":"object"`) {
					t.Errorf("%s: schema %s", tool.Name, data)
				}
			}
		}
		data := string(core.MustEncode(list.Tools))
		if first == "" {
			first = data
		}
		if data != first {
			t.Errorf("in %s the tools are others than in %s", era, eras[0])
		}
		for _, want := range []string{
			"list_agents", "show_agent", "list_agent_projects", "list_agent_roles", "create_agent", "delete_agent", "restart_agent",
			"start_agent_task", "cancel_agent_task", "show_agent_task_history", "show_agent_log",
		} {
			expect.True(t, slices.Contains(names, want), "%s is missing", want)
		}
	}
}

func TestAnOperatorDoesTheElevenOperations(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			h := newHouse(t)
			cs := h.stdio(t, person, era, nil)
			var made agentAnswer
			created := make(chan struct{})
			go func() { // a client of a model asks, in whosever name
				defer close(created)
				use(t, cs, "create_agent", map[string]any{"name": "Zed", "project": "P", "task": "wait", "role": "coder"}, &made)
			}()
			h.answer(t, "create_agent", judge.Answer{Approve: true})
			<-created
			expect.True(t, made.Agent.Name == "Zed" && made.Agent.Role == "coder" && made.Agent.Project == "P" && made.Agent.WorkspaceID != "", "%+v", made)
			full, err := h.eng.Fleet.Agent(t.Context(), lab, "Zed")
			expect.True(t, err == nil && slices.Equal(full.Command, []string{"cat"}), "made of %v, %v", full.Command, err)
			expect.Await(t, "Zed is busy", func() bool {
				var show agentAnswer
				use(t, cs, "show_agent", map[string]any{"agent_name": "Zed"}, &show)
				return show.Agent.Status == "busy"
			})
			e := refusal(t, cs, "start_agent_task", map[string]any{"agent_name": "Zed", "task": "more"})
			expect.True(t, e.Code == core.Conflict, "a busy agent: %+v", e)
			var list listAgentsAnswer
			use(t, cs, "list_agents", map[string]any{"status_filter": "busy", "project_filter": "P"}, &list)
			expect.True(t, list.Total == 1 && list.Agents[0].Name == "Zed", "%+v", list)
			use(t, cs, "list_agents", map[string]any{"page": 9}, &list)
			expect.True(t, list.Total == 2 && len(list.Agents) == 0, "past the end: %+v", list)
			var projects projectsAnswer
			use(t, cs, "list_agent_projects", nil, &projects)
			var roles rolesAnswer
			use(t, cs, "list_agent_roles", map[string]any{"project": "P"}, &roles)
			expect.True(t, len(projects.Projects) == 1 && len(roles.Roles) == 1 && roles.Roles[0].Name == "coder", "%+v %+v", projects, roles)
			done := make(chan agentAnswer, 1)
			go func() {
				var out agentAnswer
				defer func() { done <- out }()
				use(t, cs, "cancel_agent_task", map[string]any{"agent_name": "Zed"}, &out)
			}()
			h.answer(t, "cancel_agent_task", judge.Answer{Approve: true, Reason: "fine"})
			out := <-done
			expect.True(t, out.Agent.TaskID == "", "%+v", out)
			var past historyAnswer
			expect.Await(t, "the task is cancelled", func() bool {
				use(t, cs, "show_agent_task_history", map[string]any{"agent_name": "Zed"}, &past)
				return past.Total == 1 && past.Tasks[0].Status == "cancelled"
			})
			expect.True(t, past.Total == 1 && past.PageSize == 20 && past.Tasks[0].Message == "wait" && past.AgentName == "Zed", "%+v", past)
			var log logAnswer
			use(t, cs, "show_agent_log", map[string]any{"agent_name": "Zed"}, &log)
			expect.True(t, log.PageSize == 1 && len(log.Logs) <= 1, "%+v", log)
			for _, tool := range []string{"restart_agent", "delete_agent"} {
				go func() {
					var out agentAnswer
					defer func() { done <- out }()
					use(t, cs, tool, map[string]any{"agent_name": "Zed"}, &out)
				}()
				h.answer(t, tool, judge.Answer{Approve: true, Reason: "fine"})
				out := <-done
				expect.True(t, out.Agent.Name == "Zed", "%s: %+v", tool, out)
			}
			e = refusal(t, cs, "show_agent", map[string]any{"agent_name": "Zed"})
			expect.True(t, e.Code == core.NotFound, "after delete: %+v", e)
		})
	}
}

func TestBadArgumentsAreRefusedByTheirFieldAndDoNothing(t *testing.T) {
	h := newHouse(t)
	cs := h.stdio(t, person, "", nil)
	page := expect.Of(h.eng.Judge.Decisions(t.Context(), lab, core.Filter{}))(t)
	asked := 0
	for _, tool := range h.srv.order {
		good := map[string]any{}
		for _, p := range tool.params {
			if !p.required {
				continue
			}
			good[p.name] = map[string]any{text: "Sony", object: map[string]any{}, integer: p.min}[p.kind]
			if p.enum != nil {
				good[p.name] = p.enum[0]
			}
		}
		with := func(name string, value any) map[string]any {
			args := map[string]any{}
			for k, v := range good {
				args[k] = v
			}
			args[name] = value
			return args
		}
		cases := map[string]map[string]any{"no_such_field": with("no_such_field", 1)}
		for _, p := range tool.params {
			wrong := any([]any{1})
			switch {
			case p.kind == integer:
				wrong = p.max + 1
			case p.kind == text && p.required:
				wrong = 7
			case p.enum != nil:
				wrong = "other"
			case p.pattern != nil:
				wrong = "no pattern!"
			}
			cases[p.name] = with(p.name, wrong)
			if p.required {
				missing := with(p.name, nil)
				delete(missing, p.name)
				asked++
				e := refusal(t, cs, tool.name, missing)
				expect.True(t, e.Code == core.InvalidInput && e.Details["field"] == p.name, "%s without %s: %+v", tool.name, p.name, e)
			}
		}
		for field, args := range cases {
			asked++
			e := refusal(t, cs, tool.name, args)
			expect.True(t, e.Code == core.InvalidInput && e.Details["field"] == field, "%s %v: %+v", tool.name, args, e)
		}
	}
	after, err := h.eng.Judge.Decisions(t.Context(), lab, core.Filter{})
	expect.True(t, err == nil && after.Info.Total == page.Info.Total, "%d decisions, there were %d, %v", after.Info.Total, page.Info.Total, err)
	expect.Is(t, len(h.events(t, lab, "mcp.refused")), asked)
	expect.Fails(t, expect.Fault(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "approve_approval"})), "an unknown tool was called")
	expect.True(t, has(h.events(t, lab, "mcp.refused"), "approve_approval"), "the unknown tool is not audited")
}

func TestWhatAnAgentWritesWaitsForAPerson(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			h := newHouse(t)
			cs := h.stdio(t, sony, era, nil)
			use(t, cs, "list_agents", nil, nil) // reading is not asked about
			send := map[string]any{"recipient_id": "system", "payload": map[string]any{"n": 1}}
			sent := make(chan messageAnswer, 1)
			go func() {
				var out messageAnswer
				defer func() { sent <- out }()
				use(t, cs, "send_message", send, &out)
			}()
			edit := core.Raw(`{"recipient_id":"system","payload":{"n":2}}`)
			h.answer(t, "send_message", judge.Answer{Approve: true, Edit: edit})
			out := <-sent
			expect.True(t, string(out.Message.Payload) == `{"n":2}` && out.Message.SenderID == "Sony" && out.Message.Priority == 5, "%+v", out)
			refused := expect.Later(func() core.Error { return refusal(t, cs, "send_message", send) })
			h.answer(t, "send_message", judge.Answer{Reason: "not now"})
			e := <-refused
			expect.True(t, e.Code == core.Denied && strings.Contains(e.Message, "not now"), "%+v", e)
			page, err := h.eng.Bus.Read(t.Context(), alice, "system", 10)
			expect.True(t, err == nil && len(page) == 1, "%d messages, %v", len(page), err)
		})
	}
}

func TestAnEditThatTheToolCantTakeIsRefused(t *testing.T) {
	h := newHouse(t)
	cs := h.stdio(t, sony, "", nil)
	done := expect.Later(func() core.Error {
		return refusal(t, cs, "send_message", map[string]any{"recipient_id": "system", "payload": map[string]any{}})
	})
	var a judge.Approval
	expect.Await(t, "the question", func() bool {
		open, _ := h.eng.Judge.Open(t.Context(), lab)
		if len(open) == 1 {
			a = open[0]
		}
		return len(open) == 1
	})
	_, err := h.eng.Judge.Answer(t.Context(), alice, a.ApprovalID, judge.Answer{Approve: true, Edit: core.Raw(`{"recipient_id":"system","payload":{},"ttl":0}`)})
	e := core.AsError(err)
	expect.True(t, err != nil && e.Code == core.InvalidInput && e.Details["field"] == "ttl", "%v", err)
	h.answer(t, "send_message", judge.Answer{Reason: "no"})
	<-done
}

func TestACallerThatGoesTakesItsQuestionAlong(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			h := newHouse(t)
			tokens := &Tokens{}
			token := expect.Of(tokens.Issue(sony))(t)
			overHTTP := expect.Of(dial(t, h.web(t, tokens), token, era, nil))(t)
			for _, cs := range []*mcp.ClientSession{h.stdio(t, sony, era, nil), overHTTP} {
				ctx, giveUp := context.WithCancel(t.Context())
				over := make(chan struct{})
				go func() {
					defer close(over)
					_, _ = cs.CallTool(ctx, &mcp.CallToolParams{Name: "publish_message", Arguments: map[string]any{"topic": "a.b", "payload": map[string]any{}}})
				}()
				h.voids(t, giveUp)
				<-over
			}
		})
	}
}

func TestAClientThatIsKilledLeavesNothing(t *testing.T) {
	h := newHouse(t)
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := expect.Later(func() error { return h.srv.Stdio(t.Context(), sony, inR, outW) })
	cs, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, nil)
	expect.No(t, err)
	go func() {
		_, _ = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "publish_message", Arguments: map[string]any{"topic": "a.b", "payload": map[string]any{}}})
	}()
	h.voids(t, func() { // what a kill does to its pipes
		_ = inW.Close()
		_ = outR.Close()
	})
	expect.No(t, <-served)
}

// voids waits for a question, lets whoever asked go, and sees that nobody can
// approve it any more.
func (h *house) voids(t *testing.T, leave func()) {
	t.Helper()
	var id string
	expect.Await(t, "the question", func() bool {
		open, _ := h.eng.Judge.Open(t.Context(), lab)
		if len(open) == 1 {
			id = open[0].ApprovalID
		}
		return id != ""
	})
	leave()
	expect.Await(t, "the approval is void", func() bool {
		a, err := h.eng.Judge.Approval(t.Context(), lab, id)
		return err == nil && a.Status == judge.Voided
	})
	expect.Fails(t, expect.Fault(h.eng.Judge.Answer(t.Context(), alice, id, judge.Answer{Approve: true})), "a void approval was approved")
}

func TestAgentsNeverApproveAndKnowTheirTenantOnly(t *testing.T) {
	h := newHouse(t)
	for _, id := range []Identity{person, sony} {
		cs := h.stdio(t, id, "", nil)
		for _, tool := range h.srv.order {
			own := tool.name == "reply_approval" || tool.name == "withdraw_approval" // of what they asked for
			if strings.Contains(tool.name, "approv") && tool.effect != op.Reads && !own {
				t.Errorf("%s", tool.name)
			}
		}
		for _, name := range []string{"show_agent", "show_agent_log", "show_agent_task_history"} {
			e := refusal(t, cs, name, map[string]any{"agent_name": "Papi"})
			expect.True(t, e.Code == core.Denied, "%s of another tenant's agent: %+v", name, e)
		}
		var list listAgentsAnswer
		use(t, cs, "list_agents", nil, &list)
		expect.Is(t, list.Total, 1, list)
	}
	violations := h.events(t, lab, "tenant.violation")
	expect.True(t, len(violations) == 6 && has(h.events(t, lab, "mcp.refused"), "belongs to another tenant"),
		"%d violations audited: %v", len(violations), h.events(t, lab, "mcp.refused"))
}

func TestAViewersClientOnlyLooks(t *testing.T) {
	h := newHouse(t)
	cs := h.stdio(t, viewer, "", nil)
	use(t, cs, "list_tasks", nil, nil)
	e := refusal(t, cs, "send_message", map[string]any{"recipient_id": "Sony", "payload": map[string]any{}})
	expect.True(t, e.Code == core.Denied, "%+v", e)
}

func TestACallThatIsNamedTwiceHappensOnce(t *testing.T) {
	h := newHouse(t)
	cs := h.stdio(t, person, "", nil)
	call := func(id string, n int) *mcp.CallToolResult {
		r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{
			Meta: mcp.Meta{CallIDKey: id}, Name: "send_message", Arguments: map[string]any{"recipient_id": "Sony", "payload": map[string]any{"n": n}},
		})
		expect.No(t, err)
		return r
	}
	var all sync.WaitGroup
	got := make([]string, 8)
	for i := range got {
		all.Go(func() { got[i] = call("c1", 1).Content[0].(*mcp.TextContent).Text })
	}
	all.Wait()
	for _, text := range got {
		expect.True(t, text == got[0], "%s\n%s", text, got[0])
	}
	r := call("c1", 2)
	expect.True(t, r.IsError && strings.Contains(r.Content[0].(*mcp.TextContent).Text, "CONFLICT"), "another call of the same name: %+v", r)
	r = call("c2", 2)
	expect.True(t, !r.IsError, "%+v", r)
	messages, err := h.eng.Bus.Read(t.Context(), core.Caller{Tenant: lab, Name: "Sony", Kind: core.Agent}, "Sony", 10)
	expect.True(t, err == nil && len(messages) == 2, "%d messages, %v", len(messages), err)
}

func TestResultsFitTheirSchemasAndHideNothing(t *testing.T) {
	h := newHouse(t)
	cs := h.stdio(t, person, "", nil)
	var task taskAnswer
	use(t, cs, "dispatch_task", map[string]any{
		"kind": "exec.run", "input": map[string]any{"argv": []string{"printf", `a\033[31mb\342\200\256c`}}, "wait_s": 20,
	}, &task)
	expect.Must(t, task.Task.Status == "succeeded", "%+v", task)
	calls := map[string]map[string]any{
		"list_agents": nil, "show_agent": {"agent_name": "Sony"}, "list_agent_projects": nil, "list_agent_roles": {"project": "P"},
		"show_agent_task_history": {"agent_name": "Sony"}, "show_agent_log": {"agent_name": "Sony"}, "list_tasks": nil,
		"show_task": {"task_id": task.Task.TaskID}, "why_task": {"task_id": task.Task.TaskID}, "list_approvals": nil,
		"list_skills": nil, "read_messages": nil,
	}
	results := map[string]*mcp.CallToolResult{}
	for name, args := range calls {
		r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		expect.Must(t, err == nil && !r.IsError, "%s: %v %+v", name, err, r)
		results[name] = r
	}
	for name := range h.srv.tools { // some clients check what an error says too
		r, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"no_such": 1}})
		expect.Must(t, err == nil && r.IsError && r.StructuredContent != nil, "%s: %v %+v", name, err, r)
		results[name+" "] = r
	}
	for name, r := range results {
		name = strings.TrimSpace(name)
		resolved := expect.Of(h.srv.tools[name].out.Resolve(nil))(t)
		var v any
		text := r.Content[0].(*mcp.TextContent).Text
		expect.No(t, json.Unmarshal([]byte(text), &v))
		expect.No(t, resolved.Validate(v), name, text)
		expect.True(t, !strings.ContainsAny(text, "\x1b\u202e") && !strings.Contains(text, `\u001b`), "%s: %q", name, text)
	}
}
