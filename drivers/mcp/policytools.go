package mcp

import (
	"context"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// policyTools propose, try and look. None activates: that is a person's to do
// at a door of swarmdeck's own, as an answer to an approval is.
func policyTools() []tool {
	id := param{name: "policy_id", kind: text, about: "id of the policy", required: true, min: 1, max: 128}
	return []tool{
		define("list_policies", "List policies", "List the policies that rule, ruled or are proposed, newest first.", reads, append([]param{
			{name: "status", kind: text, about: "only of this status", enum: []string{"proposal", "active", "retired", "withdrawn"}},
		}, pageParams(core.DefaultPageSize)...), listPolicies),
		define("show_policy", "Show a policy", "Show a policy with its source and its cases.", reads, []param{id}, showPolicy),
		define("decide_policy", "Ask the policy", "Ask the policy that rules what it would decide, without effect: which rule decides, and what it read.", reads, []param{
			{name: "input", kind: object, about: `what to decide: {"action":{"server","tool","args","kind"},"agent","context":{"gate","actor_kind"}} or {"name":"SERVER_TOOL","arguments"}`, required: true},
		}, decidePolicy),
		define("propose_policy", "Propose a policy", "Propose a policy, which rules nothing until a person activates it. The embedded deny rules stand above any.", writes, []param{
			{name: "kind", kind: text, about: "rules: a table in YAML; program: JSON on stdin, an answer in JSON on stdout", required: true, enum: []string{"rules", "program"}},
			{name: "source", kind: text, about: "the table, or the program's text", required: true, min: 1, max: 1 << 20},
			{name: "tests", kind: text, about: `its cases, JSON lines {"name","input","expect":{"decision","reason_code"?}}; without any it can't be activated`, max: 1 << 20},
			{name: "name", kind: text, about: "what to call it", max: 64},
			{name: "interpreter", kind: text, about: "command that runs a program, its words parted by spaces; without one its first line (#!) says", max: 1024},
			{name: "serve", kind: yesNo, about: "the program stays: it answers a line for each line", def: false},
			{name: "gates", kind: text, about: "gates that a program decides, parted by commas; without any all", max: 256},
		}, proposePolicy),
		define("test_policy", "Run a policy's cases", "Run a policy's cases as real decisions are made, without effect.", writes, []param{id}, testPolicy),
		define("backtest_policy", "Try a policy on the past", "Make past decisions anew with a policy, without effect, and see which would change.", writes, []param{
			id, {name: "last", kind: integer, about: "decisions to look at", def: judge.DefaultHistory, min: 1, max: judge.MaxHistory},
		}, backtestPolicy),
		define("withdraw_policy", "Take a policy back", "Take a proposal back; an agent its own.", writes, []param{id}, withdrawPolicy),
	}
}

// policyView is a policy without its text.
type policyView struct {
	PolicyID     string              `json:"policy_id"`
	Name         string              `json:"name"`
	Kind         string              `json:"kind"`
	Status       string              `json:"status"`
	URI          string              `json:"uri" jsonschema:"the resource that its source is"`
	SourceDigest string              `json:"source_digest"`
	Version      string              `json:"policy_version"`
	Cases        int                 `json:"cases"`
	TestsSummary *judge.TestsSummary `json:"tests_summary,omitempty"`
	Serve        bool                `json:"serve,omitempty"`
	Gates        []judge.Gate        `json:"gates,omitempty"`
	Unsandboxed  bool                `json:"unsandboxed,omitempty" jsonschema:"a program that can't be jailed here"`
	ProposedBy   string              `json:"proposed_by"`
	ProposedKind core.ActorKind      `json:"proposed_kind"`
	CreatedAt    string              `json:"created_at"`
	ActivatedBy  string              `json:"activated_by,omitempty"`
	ActivatedAt  string              `json:"activated_at,omitempty"`
}

func viewPolicy(p judge.Policy) policyView {
	return policyView{
		PolicyID: p.PolicyID, Name: p.Name, Kind: string(p.Kind), Status: string(p.Status), URI: p.URI, SourceDigest: p.SourceDigest,
		Version: p.Version, Cases: p.Cases, TestsSummary: p.TestsSummary, Serve: p.Serve, Gates: p.Gates, Unsandboxed: p.Unsandboxed,
		ProposedBy: p.ProposedBy, ProposedKind: p.ProposedKind, CreatedAt: stamp(p.CreatedAt),
		ActivatedBy: p.ActivatedBy, ActivatedAt: stamp(p.ActivatedAt),
	}
}

type policyArg struct {
	PolicyID string `json:"policy_id"`
}

type policyAnswer struct {
	Policy policyView `json:"policy"`
}

type listPoliciesAnswer struct {
	Policies []policyView `json:"policies"`
	pageView
}

func listPolicies(ctx context.Context, c *call, in struct {
	paging
	Status string `json:"status"`
},
) (listPoliciesAnswer, error) {
	f, err := core.Filter{Page: in.Page, Size: in.PageSize}.Check()
	if err != nil {
		return listPoliciesAnswer{}, err
	}
	all, err := c.eng.Judge.Policies(ctx, c.id.Tenant)
	if err != nil {
		return listPoliciesAnswer{}, err
	}
	var found []judge.Policy
	for _, p := range all {
		if in.Status == "" || in.Status == string(p.Status) {
			found = append(found, p)
		}
	}
	from := min(f.Offset(), len(found))
	page := core.NewPage(found[from:min(from+f.Size, len(found))], f, len(found))
	return listPoliciesAnswer{views(page.Items, viewPolicy), viewPage(page.Info)}, nil
}

type wholePolicy struct {
	policyAnswer
	Source string `json:"source"`
	Tests  string `json:"tests" jsonschema:"its cases, JSON lines"`
}

func showPolicy(ctx context.Context, c *call, in policyArg) (wholePolicy, error) {
	d, err := c.eng.Judge.GetPolicy(ctx, c.id.Tenant, in.PolicyID)
	return wholePolicy{policyAnswer{viewPolicy(d.Policy)}, d.Source, d.CaseSet}, err
}

func decidePolicy(ctx context.Context, c *call, in struct {
	Input core.Raw `json:"input"`
},
) (judge.Explanation, error) {
	return c.eng.Judge.Explain(ctx, c.id.Tenant, "", in.Input)
}

func proposePolicy(ctx context.Context, c *call, in struct {
	Kind        judge.PolicyKind `json:"kind"`
	Source      string           `json:"source"`
	Tests       string           `json:"tests"`
	Name        string           `json:"name"`
	Interpreter string           `json:"interpreter"`
	Serve       bool             `json:"serve"`
	Gates       string           `json:"gates"`
},
) (policyAnswer, error) {
	proposal := judge.Proposal{
		Kind: in.Kind, Name: in.Name, Source: []byte(in.Source), Cases: []byte(in.Tests),
		Interpreter: strings.Fields(in.Interpreter), Serve: in.Serve,
	}
	for _, g := range strings.FieldsFunc(in.Gates, func(r rune) bool { return r == ',' || r == ' ' }) {
		proposal.Gates = append(proposal.Gates, judge.Gate(g))
	}
	p, err := c.eng.Judge.Propose(ctx, c.by, proposal)
	return policyAnswer{viewPolicy(p)}, err
}

type testedAnswer struct {
	policyAnswer
	Cases []judge.CaseResult `json:"cases"`
}

func testPolicy(ctx context.Context, c *call, in policyArg) (testedAnswer, error) {
	p, results, err := c.eng.Judge.TestPolicy(ctx, c.by, in.PolicyID)
	return testedAnswer{policyAnswer{viewPolicy(p)}, append([]judge.CaseResult{}, results...)}, err
}

func backtestPolicy(ctx context.Context, c *call, in struct {
	policyArg
	Last int `json:"last"`
},
) (judge.BacktestReport, error) {
	return c.eng.Judge.BacktestPolicy(ctx, c.by, in.PolicyID, in.Last)
}

func withdrawPolicy(ctx context.Context, c *call, in policyArg) (policyAnswer, error) {
	p, err := c.eng.Judge.Withdraw(ctx, c.by, in.PolicyID)
	return policyAnswer{viewPolicy(p)}, err
}
