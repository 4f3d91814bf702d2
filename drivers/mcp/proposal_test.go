package mcp

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/expect"
)

const (
	// The inspector sends what is JSON as that, so these are none.
	tinyPolicy = `schema: 1
name: tiny
rules:
  - {id: all, gates: [tool.call], when: "true", decision: approve, reason_code: tiny.all, risk: low}
`
	tinyCase = `{"name":"a tool","input":{"action":{"tool":"fs.write"}},"expect":{"decision":"approve"}}` + "\n" + `{"name":"another","input":{"action":{"tool":"fs.move"}},"expect":{"decision":"approve"}}`
)

type policyOut struct {
	Policy judge.Policy `json:"policy"`
}

// TestAnAgentProposesAndNeverActivates goes through all that an agent's client
// can try.
func TestAnAgentProposesAndNeverActivates(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			h := newHouse(t)
			cs := h.stdio(t, sony, era, nil)
			var made, gone policyOut
			use(t, cs, "propose_policy", map[string]any{"kind": "rules", "source": tinyPolicy, "tests": tinyCase}, &made)
			p := made.Policy
			expect.Must(t, p.Status == "proposal" && p.ProposedBy == "Sony" && p.ProposedKind == core.Agent, "%+v", made)
			arg := map[string]any{"policy_id": made.Policy.PolicyID}
			var tested testedPolicy
			use(t, cs, "test_policy", arg, &tested)
			s := tested.Policy.TestsSummary
			expect.True(t, s != nil && s.Passed == 2 && tested.Cases[0].Passed, "%+v", tested)
			var rep judge.BacktestReport
			use(t, cs, "backtest_policy", arg, &rep)
			expect.Is(t, rep.Version, made.Policy.Version, rep)
			before := h.eng.Judge.PolicyVersion(lab)
			for _, name := range []string{"activate_policy", "restore_policy", "approve"} {
				expect.Fails(t, expect.Fault(cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: arg})), name)
				expect.True(t, has(h.events(t, lab, "mcp.refused"), name), "%s: the refusal is not in the log", name)
			}
			robot := sony.caller()
			for what, try := range map[string]func() error{
				"activate": func() error { _, err := h.eng.Judge.Activate(t.Context(), robot, made.Policy.PolicyID); return err },
				"restore":  func() error { _, err := h.eng.Judge.Restore(t.Context(), robot, judge.BasePolicy); return err },
				"terms":    func() error { _, err := h.eng.Judge.SetTerms(t.Context(), robot, judge.PolicyTerms{}); return err },
				"apply": func() error {
					_, _, err := h.eng.Judge.Apply(t.Context(), robot, judge.Proposal{Kind: judge.KindRules, Source: []byte(tinyPolicy), Cases: []byte(tinyCase)})
					return err
				},
			} {
				err := try()
				expect.True(t, err != nil && core.AsError(err).Code == core.Denied, "%s: %v", what, err)
			}
			expect.True(t, len(h.events(t, lab, "policy.refused")) >= 4 && h.eng.Judge.PolicyVersion(lab) == before,
				"a refusal is not in the log, or another policy rules")
			other, err := h.eng.Judge.Propose(t.Context(), alice, judge.Proposal{Kind: judge.KindRules, Name: "hers", Source: []byte(tinyPolicy), Cases: []byte(tinyCase)})
			expect.No(t, err)
			got := refusal(t, cs, "withdraw_policy", map[string]any{"policy_id": other.PolicyID})
			expect.True(t, got.Code == core.Denied, "another's proposal: %+v", got)
			use(t, cs, "withdraw_policy", arg, &gone)
			expect.Is(t, gone.Policy.Status, "withdrawn", gone)
		})
	}
}

func TestBadProposalsNameTheFieldOverMCP(t *testing.T) {
	h := newHouse(t)
	cs := h.stdio(t, sony, "", nil)
	for field, args := range map[string]map[string]any{
		"kind":            {"kind": "rego", "source": "x"},
		"source":          {"kind": "rules"},
		"rules.all.when":  {"kind": "rules", "source": strings.Replace(tinyPolicy, `"true"`, `"nope("`, 1)},
		"expect.decision": {"kind": "rules", "source": tinyPolicy, "tests": strings.Replace(tinyCase, `"approve"`, `"allow"`, 1)},
		"gates":           {"kind": "rules", "source": tinyPolicy, "gates": "tool.call"},
	} {
		got := refusal(t, cs, "propose_policy", args)
		expect.True(t, got.Code == core.InvalidInput && (strings.Contains(got.Message, field) || got.Details["field"] == field), "%s: %+v", field, got)
	}
	all, err := h.eng.Judge.Policies(t.Context(), lab)
	expect.True(t, err == nil && len(all) == 0, "%v %v", all, err)
	got := refusal(t, cs, "show_policy", map[string]any{"policy_id": "pol_x"})
	expect.True(t, got.Code != "", "%+v", got)
}

// TestAnActivationIsToldToClients subscribes as a client does, and sees what it
// is told when a person activates what an agent proposed.
func TestAnActivationIsToldToClients(t *testing.T) {
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			h := newHouse(t)
			updated, listed := make(chan string, 64), make(chan struct{}, 64)
			cs := h.stdio(t, viewer, era, &mcp.ClientOptions{
				ResourceUpdatedHandler:     func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI },
				ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { listed <- struct{}{} },
			})
			for _, uri := range subscribable {
				expect.No(t, cs.Subscribe(t.Context(), &mcp.SubscribeParams{URI: uri}))
			}
			if era == "2026-07-28" {
				expect.Await(t, "the server's word", func() bool { return h.acknowledged.Load() == int64(len(subscribable))+1 }) // of these, and of the list
			}
			told := func(want ...string) {
				t.Helper()
				missing := map[string]bool{}
				for _, uri := range want {
					missing[uri] = true
				}
				for end := time.After(2 * time.Minute); len(missing) > 0; {
					select {
					case uri := <-updated:
						delete(missing, uri)
					case <-end:
						t.Fatalf("not told of %v", missing)
					}
				}
				expect.From(t, listed, "not told that the list changed")
			}
			read := func(uri string) string {
				t.Helper()
				r := expect.Of(cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}))(t)
				return r.Contents[0].Text
			}
			expect.Has(t, read(sourceURI), "own.policy", "the source is not that of the embedded policy")
			p, err := h.eng.Judge.Propose(t.Context(), sony.caller(), judge.Proposal{Kind: judge.KindRules, Source: []byte(tinyPolicy), Cases: []byte(tinyCase)})
			expect.No(t, err)
			told(policiesURI)
			expect.Has(t, read(policiesURI), p.PolicyID)
			expect.Is(t, read(p.URI), tinyPolicy)
			expect.Fails(t, expect.Fault(cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: proposalHead + "00"})), "read a proposal that is not there")
			expect.Of(h.eng.Judge.Activate(t.Context(), alice, p.PolicyID))(t)
			told(policyURI, sourceURI, policiesURI)
			expect.True(t, read(sourceURI) == tinyPolicy && strings.Contains(read(policyURI), `"tiny.all"`),
				"the resources are not those of the policy that rules")
		})
	}
}
