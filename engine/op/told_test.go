package op

import (
	"context"
	"slices"
	"testing"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/operator"
	"swarmdeck/engine/retention"
	"swarmdeck/engine/session"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tools"
	"swarmdeck/expect"
)

func TestAChangeIsToldInASentence(t *testing.T) {
	for _, c := range []struct {
		op   string
		out  any
		want string
	}{
		{"approval deny", judge.Approval{ApprovalID: "ap_1", TaskID: "tk_1", Subject: judge.Subject{Headline: "write a file"}, Status: judge.Refused}, "denied approval ap_1: write a file"},
		{
			"approval approve",
			judge.Approval{ApprovalID: "ap_1", Status: judge.Open, Risk: judge.Critical, Consents: []judge.Consent{{By: "alice"}}},
			"approval ap_1 is still open: 1 of 2 persons approved it: alice",
		},
		{"task dispatch", task.Task{TaskID: "tk_7", Status: task.Queued, Title: "ls", Waiting: "approval"}, "dispatched task tk_7: ls (waits for approval)"},
		{"agent assign", task.Task{TaskID: "tk_8", Agent: "bob", Title: "hi"}, "gave agent bob task tk_8: hi"},
		{"agent pause", fleet.Agent{Name: "bob"}, "asked to pause: agent bob"},
		{"agent delete", DeletedAgent{fleet.Agent{Name: "bob"}}, "deleted agent bob"},
		{"session stop", session.Session{SessionID: "s_1"}, "stopped session s_1"},
		{"policy activate", judge.Policy{PolicyID: "p_1", Status: judge.PolicyActive}, "activated policy p_1"},
		{"policy restore", judge.Policy{PolicyID: "p_1"}, "you are the first of two: another person must restore policy p_1 too"},
		{"policy test", TestedPolicy{Summary: &judge.TestsSummary{Total: 3, Failed: 1}}, "1 of 3 cases fail"},
		{"policy backtest", judge.BacktestReport{Checked: 9, Flips: 2}, "2 of 9 decisions would change"},
		{"policy rules revoke", judge.Rule{RuleID: "r_1"}, "revoked rule r_1"},
		{"grant revoke", judge.Rule{RuleID: "r_1"}, "revoked rule r_1"},
		{"grant request", judge.Approval{ApprovalID: "ap_1", Subject: judge.Subject{Headline: "let any agent call x up to 1 time within 1h of the approval"}}, "asked for it: approval ap_1: let any agent call x up to 1 time within 1h of the approval"},
		{"subagent pause", skill.Subagent{AgentID: "a_1", Name: "Navigator"}, "asked to pause: subagent a_1: Navigator"},
		{"skill invoke", Invoked{Subagent: skill.Subagent{AgentID: "a_1", Name: "Navigator"}}, "runs the skill: subagent a_1: Navigator"},
		{"skill unload", []skill.Change{{Name: "grasp", Version: "1.0.0"}}, "unloaded skill grasp@1.0.0"},
		{"skill load", []skill.Change{{}, {}}, "loaded 2 skills"},
		{"bus publish", bus.Message{MessageID: "m_1"}, "published message m_1"},
		{"bus read", []bus.Message{{MessageID: "m_1"}}, "read message m_1"},
		{"bus unsubscribe", Unsubscribed{"indexer", "removed"}, "subscription indexer removed"},
		{"project learn", []Offer{}, "learned 0 projects"},
		{"operator set", operator.Operator{Name: "bob"}, "let in operator bob"},
		{"tenant retention apply", Applied{}, "nothing was too old"},
		{"dag intent cancel", control.Intent{IntentID: "in_1", Subject: "dir-1"}, "withdrew intent in_1: dir-1"},
		{"dag resource snapshot", resource.Shown{Snapshot: dag.Snapshot{ID: "snap-1"}}, "kept snapshot snap-1"},
		{"dag import", told(dag.Transferred{}, "imported 3 events from a.db, 1 of them new"), "imported 3 events from a.db, 1 of them new"},
		{"audit key rotate", audit.Key{KeyID: "ab12"}, "signs from now on: key ab12"},
		{"tenant create", swarm.Tenant{TenantID: "t_1"}, "created tenant t_1"},
		{"tenant erase", erased(retention.Erased{Subject: "bob", Erased: map[string]int{"tasks": 2}, Next: "store compact"}), "erased of bob: 2 tasks\nstore compact"},
		{"policy terms", judge.PolicyTerms{TwoPersons: true}, "an activation needs two persons: true, a jail: false"},
		{"operator handover", engine.Handover{To: "carol", EventID: "ev_1"}, "carol takes over; recorded as ev_1"},
		{"mcp remove", tools.Server{Name: "files"}, "removed server files"},
		{"store compact", compacted(2048, 1024, "a.db"), "compacted a.db: 2.0 KiB before, 1.0 KiB now"},
		{"estop on", estop.State{On: true}, "emergency stop: everything is told to freeze"},
		{"estop off", estop.State{}, "thawed: work goes on"},
		{"cad agent shutdown", cad.Agent{AgentID: "ann"}, "shut down CAD agent ann"},
		{"cad op", Answer{Done: cad.Done{Method: "solid.extrude", WorkspaceID: "ws_ann"}}, "carried out solid.extrude in ws_ann"},
		{"cad controller max-concurrent", cad.Info{MaxConcurrent: 4}, "set: at most 4 CAD agents work at once"},
		{"cad message", cad.AgentMessage{MessageID: "m_1", MessageType: cad.Request, ToAgentID: "bob"}, "sent message m_1: request to bob"},
		{"cad messages", core.Page[cad.AgentMessage]{Items: make([]cad.AgentMessage, 2)}, "read 2 messages"},
		{"cad workspace undo", cad.Done{WorkspaceID: "main"}, "took back the newest operation of workspace main"},
		{"cad workspace create", cad.Workspace{WorkspaceID: "main"}, "created workspace main"},
		{"cad scenario run", cad.Workflow{WorkflowID: "wf_1", ScenarioName: "stand", State: cad.WorkflowRunning}, "started workflow wf_1: stand"},
		{"cad workflow retry", cad.Workflow{WorkflowID: "wf_1", Goal: "a box", State: cad.WorkflowCompleted}, "goes on: workflow wf_1: a box (completed)"},
		{"cad workflow cancel", cad.Workflow{WorkflowID: "wf_1", ScenarioName: "stand", State: cad.WorkflowFailed, Cancelled: "enough"}, "cancelled workflow wf_1: stand"},
		{"cad decompose", Decomposed{Workflow: cad.Workflow{WorkflowID: "wf_1", Assignments: make([]cad.TaskAssignment, 3)}}, "workflow wf_1: 3 tasks wait for an agent"},
		{"cad assign", cad.TaskAssignment{TaskID: "box", AgentID: "ann", Brief: cad.Brief{Description: "A box"}}, "gave ann task box: A box"},
	} {
		expect.Is(t, Find(c.op).Sentence(c.out), c.want, c.op)
	}
}

func TestEveryOperationIsWhole(t *testing.T) {
	for _, n := range Nouns() {
		for _, o := range n.Ops() {
			expect.True(t, o.Short != "" && o.run != nil && o.Out != nil, "%s is not described", o.Name)
			expect.Is(t, o.Effect == Reads || o.Streams, o.Done == "", o.Name, "effect", o.Effect, "with the sentence", o.Done)
			expect.True(t, o.Undo == "" || Find(o.Undo) != nil, "%s: is undone by %q, which is no operation", o.Name, o.Undo)
			expect.True(t, !o.ForAgents || o.Effect == Reads, "%s: an agent could change something by it", o.Name)
			names := map[string]bool{}
			for _, p := range o.Params {
				if names[p.Name] || p.About == "" {
					t.Errorf("%s: parameter %s is there twice, or says nothing", o.Name, p.Name)
				}
				names[p.Name] = true
			}
		}
	}
	expect.True(t, Find("task nosuch") == nil && Find("nosuch") == nil, "found what is not there")
}

func TestLimitsAreReadOfALine(t *testing.T) {
	b, err := ParseBudget("tokens=100,cost=2.5,tasks=3,wall=90s")
	expect.True(t, err == nil && b.Tokens == 100 && b.CostUSD == 2.5 && b.Tasks == 3 && b.WallS == 90, "%v %v", b, err)
	for _, bad := range []string{"x", "tokens=1.5", "cost=-1", "wall=1y", "tasks=", "cost=NaN"} {
		_, err = ParseBudget(bad)
		expect.Is(t, core.AsError(err).Code, core.InvalidInput, bad)
	}
}

func TestWhatWasDoneIsToldBesideAFailure(t *testing.T) {
	for name, c := range map[string]struct {
		done []string
		err  error
		told bool
	}{
		"well":                  {[]string{"a"}, nil, true},
		"failed":                {[]string{"a"}, &Failed{}, true},
		"failed with nothing":   {nil, &Failed{}, false},
		"another error":         {[]string{"a"}, core.Errorf(core.Denied, "no"), false},
		"well and nothing came": {nil, nil, true},
	} {
		o := define(Op{}, func(context.Context, *Call) ([]string, error) { return c.done, c.err })
		out, err := o.Run(t.Context(), &Call{})
		expect.True(t, (out != nil) == c.told && err == c.err, "%s: %v, %v", name, out, err)
	}
}

func TestAStreamEndsWithTheErrorOfItsDoor(t *testing.T) {
	full := core.Errorf(core.StorageFull, "full")
	o := stream(Op{}, func(_ context.Context, _ *Call, emit func(...int) error) error {
		if err := emit(); err != nil {
			return err // nothing came
		}
		if err := emit(1, 2); err != nil {
			return err
		}
		return emit(3)
	})
	var got []int
	call := Call{Emit: func(values any) error {
		if got = append(got, values.([]int)...); len(got) == 3 {
			return full
		}
		return nil
	}}
	out, err := o.Run(t.Context(), &call)
	expect.True(t, out == nil && err == full && slices.Equal(got, []int{1, 2, 3}), "%v %v %v", out, err, got)
}
