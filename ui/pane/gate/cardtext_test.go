package gate

import (
	"strings"
	"testing"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
	"swarmdeck/ui/pane"
	"swarmdeck/ui/screen"
)

func TestTheCardOfAConnectionNamesHostPortProcessAndRun(t *testing.T) {
	asked := time.Date(2026, 5, 1, 14, 0, 0, 0, time.UTC)
	p := NewCard(nil)
	p.a = &judge.Approval{
		TenantID: "t_acme", ApprovalID: "ap_1", Status: judge.Open, Gate: judge.GateNet, Risk: judge.Medium,
		Action: judge.Action{Kind: judge.KindNet, Tool: "api.example:443", CallID: "run-7", Args: core.Raw(`{"host":"api.example","port":443,"process":"curl"}`)},
		Agent:  judge.AgentRef{Name: "ada", Role: "coder", Project: "site", Profile: "worker"}, TaskID: "tk_1", Driver: "acp", Intent: "curl of ada connects to api.example:443",
		CreatedAt: asked, DeadlineAt: asked.Add(15 * time.Minute), StartBy: asked.Add(time.Minute),
	}
	p.a.During = []judge.During{{CallID: "c1", Tool: "execute", Title: "fetch the page"}}
	p.args = newArguments(p.a.Action.Args, nil, true)
	p.Resize(80, 60)
	p.lay(pane.Env{Now: asked})
	c := screen.New(80, 60)
	p.Page.Draw(c, false)
	text := strings.Join(c.Plain(), "\n")
	for _, want := range []string{"net.connect api.example:443", `"host": "api.example"`, `"port": 443`, `"process": "curl"`, "run-7", "for this run: until the agent starts again", "task tk_1 of tenant t_acme, before the connection is made", "ada (coder in site), worker", "tool call    execute fetch the page (c1)", "14:01:00, then: void: the connection is given up"} {
		expect.Has(t, text, want)
	}
}
