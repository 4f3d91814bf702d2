package op

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/reach"
)

func policies() []*Op {
	type P = judge.Policy
	id := arg("ID", "policy")
	return []*Op{
		picked(Op{
			Name: "policy list", Short: "List the policies, newest first", ForAgents: true,
			Statuses: []string{"proposal", "active", "retired", "withdrawn"}, Tool: Tool{Name: "list_policies"},
		}, func(c *Call) tenantList[P] { return c.Judge.Policies }, func(_ *Call, p P) core.Traits {
			return core.Traits{
				Status: string(p.Status), Agent: p.ProposedBy, Kind: string(p.Kind), At: p.CreatedAt,
				Text: p.PolicyID + " " + p.Name + " " + p.SourceDigest + " " + p.Version + " " + p.ProposedBy,
			}
		}),
		show(Op{Name: "policy show", Short: "Show a policy with its source and cases", ForAgents: true, Tool: Tool{Name: "show_policy"}}, id,
			byTenant(func(c *Call) tenantRead[string, judge.PolicyDetail] { return c.Judge.GetPolicy })),
		change(Op{
			Name: "policy test", Short: "Run a policy's cases", Done: "tested",
			Tool: Tool{Name: "test_policy", About: "Run a policy's cases as real decisions are made, without effect."},
			Long: "Run a policy's cases as real decisions are made, without effect. Fails when one does.",
		}, id, func(ctx context.Context, c *Call, id string) (t TestedPolicy, err error) {
			p, results, err := c.Judge.TestPolicy(ctx, c.By, id)
			return TestedPolicy{p.PolicyID, p.Version, p.TestsSummary, p.Unsandboxed, results, p}, err
		}),
		policyPropose(),
		policyTerms(),
		policyBacktest(),
		change(Op{
			Name: "policy activate", Short: "Let a policy rule from now on", Role: Approver, Confirm: ConfirmAsk, Done: "activated",
			Long: "Let a policy rule from now on. Its cases are run once more, and all must pass. Where the tenant asks for two\n" +
				"persons the first activation leaves it a proposal. The deny rules of the embedded policy stand above any other.",
		}, id, func(ctx context.Context, c *Call, id string) (P, error) { return c.Judge.Activate(ctx, c.By, id) }),
		change(Op{Name: "policy withdraw", Short: "Take a policy back", Confirm: ConfirmAsk, Done: "withdrew", Tool: Tool{Name: "withdraw_policy", About: "Take a proposal back; an agent its own."}}, id,
			func(ctx context.Context, c *Call, id string) (P, error) { return c.Judge.Withdraw(ctx, c.By, id) }),
		change(Op{
			Name: "policy restore", Short: "Let a policy rule again that ruled before", Role: Approver, Confirm: ConfirmAsk, Done: "restored",
			Long:    "Let a policy rule again that ruled before. \"default\" is the embedded one.",
			Example: "policy restore default",
		}, id, func(ctx context.Context, c *Call, id string) (P, error) { return c.Judge.Restore(ctx, c.By, id) }),
		policyDecide(),
		ruleList(Op{Name: "policy rules list", Short: "List the rules"}),
		ruleRevoke(Op{Name: "policy rules revoke", Short: "End a rule"}),
	}
}

// TestedPolicy is what the cases of a policy came to.
type TestedPolicy struct {
	PolicyID    string              `json:"policy_id"`
	Version     string              `json:"policy_version"`
	Summary     *judge.TestsSummary `json:"tests_summary"`
	Unsandboxed bool                `json:"unsandboxed,omitzero"`
	Cases       []judge.CaseResult  `json:"cases"`
	Policy      judge.Policy        `json:"-"`
}

func policyPropose() *Op {
	var in judge.Proposal
	var source, tests File
	var interpreter Words
	var gates []string
	return define(Op{
		Name: "policy propose", Short: "Propose a policy; it rules nothing yet", Undo: "policy withdraw", Done: "proposed",
		Long: "Propose a policy; it rules nothing yet. A .yaml, .yml or .json file is a table of rules, whose lists (commands, tools,\n" +
			"topics …) are the embedded ones where it has none. Any other file is a program: it reads one JSON document on its\n" +
			"stdin and prints {decision, reason_code, confidence, rationale, rule_id?}. Agents may propose, never activate.",
		Example: "policy propose policy.yaml --tests policy.jsonl",
		Tool: Tool{
			Name: "propose_policy", Names: map[string]string{"file": "source", "gate": "gates"}, Need: []string{"kind"},
			About: "Propose a policy, which rules nothing until a person activates it. The embedded deny rules stand above any.",
		},
		Params: []*Param{
			flag((*string)(&in.Kind), "kind", "what it is: rules, program (default by the file's name)").enum(string(judge.KindRules), string(judge.KindProgram)).
				client("rules: a table in YAML; program: JSON on stdin, an answer in JSON on stdout"),
			place(&source, "FILE", "text").bounds(1, core.MaxInput).client("the table, or the program's text"),
			flag(&tests, "tests", "its cases: a `FILE` of JSON lines {name, input, expect}").from("text").bounds(0, core.MaxInput).
				client(`its cases, JSON lines {"name","input","expect":{"decision","reason_code"?}}; without any it can't be activated`),
			flag(&in.Name, "name", "what to call it (default its own name, or the file's)").bounds(0, 64).client("what to call it"),
			flag(&interpreter, "interpreter", "`COMMAND` that runs a program (default its first line, #!)").names(reach.Command).bounds(0, 1024).
				client("command that runs a program, its words parted by spaces; without one its first line (#!) says"),
			flag(&in.Serve, "serve", "the program stays: it answers a line for each line"),
			flag(&gates, "gate", "`GATE` that the program decides; may be repeated (default all)").bounds(0, 256).
				client("gates that a program decides, parted by commas; without any all"),
		},
	}, func(ctx context.Context, c *Call) (judge.Policy, error) {
		in.Source, in.Cases = source.Data, tests.Data
		return c.Judge.Propose(ctx, c.By, ProposalOf(in, source.Name, interpreter, gates))
	})
}

// ProposalOf says by a file's name what kind of policy it is, unless that is said.
func ProposalOf(p judge.Proposal, path string, interpreter, gates []string) judge.Proposal {
	if p.Interpreter, p.Gates = interpreter, nil; p.Kind == "" {
		p.Kind = judge.KindProgram
		if slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path))) {
			p.Kind = judge.KindRules
		}
	}
	if p.Kind == judge.KindProgram && p.Name == "" && path != "" && path != "-" {
		p.Name = filepath.Base(path)
	}
	for _, g := range gates {
		p.Gates = append(p.Gates, judge.Gate(g))
	}
	return p
}

func policyTerms() *Op {
	var two, jailed, sign string
	var off, on []string
	var o *Op
	o = define(Op{
		Name: "policy terms", Short: "What holds whichever policy rules", Effect: Reads, Full: true,
		Long: "Show or change what holds whichever policy rules: two persons and a jail for programs at an activation, and the\n" +
			"floors, which ask a person about what a policy would approve. Where two persons are needed, it takes two to ask for less\n" +
			"as well, and it always takes two to switch a floor off or to have less signed. Changing anything needs the rights of approver.",
		Params: []*Param{
			flag(&two, "two-persons", "`on|off`: two operators must activate").enum("on", "off"),
			flag(&jailed, "jailed", "`on|off`: a program that can't be jailed here is refused").enum("on", "off"),
			flag(&sign, "sign", "`off|critical|high|all`: answers at this risk have to be signed by a key of who answers").enum(core.Strings(judge.Signs()...)...),
			{Name: "floor-off", About: "the `FLOOR` that is not to hold: critical, result.band, result.sensitive; may be repeated", Into: &off},
			{Name: "floor-on", About: "the `FLOOR` that is to hold again; may be repeated", Into: &on},
		},
		Check: func(*Call) error {
			if two != "" || jailed != "" || sign != "" || len(off) > 0 || len(on) > 0 {
				o.Effect, o.Role = Writes, Approver
			}
			return nil
		},
	}, func(ctx context.Context, c *Call) (judge.PolicyTerms, error) {
		now, err := c.Judge.Terms(ctx, c.By.Tenant)
		if err != nil || o.Effect == Reads {
			return now, err
		}
		if two != "" {
			now.TwoPersons = two == "on"
		}
		if jailed != "" {
			now.Jailed = jailed == "on"
		}
		if sign != "" {
			now.Sign = judge.Sign(sign)
		}
		for _, id := range on {
			if !slices.Contains(c.Judge.Floors(), id) {
				return now, core.Invalid("floor-on", id, strings.Join(c.Judge.Floors(), ", "))
			}
		}
		now.FloorsOff = slices.DeleteFunc(append(slices.Clone(now.FloorsOff), off...), func(id string) bool { return slices.Contains(on, id) })
		return c.Judge.SetTerms(ctx, c.By, now)
	})
	return o
}

func policyBacktest() *Op {
	last := judge.DefaultHistory
	return change(Op{
		Name: "policy backtest", Short: "See which past decisions a policy would change", Done: "tried on the past:",
		Tool:   Tool{Name: "backtest_policy", About: "Make past decisions anew with a policy, without effect, and see which would change."},
		Params: []*Param{flag(&last, "last", fmt.Sprintf("`N` decisions to look at, 1-%d", judge.MaxHistory)).bounds(1, judge.MaxHistory)},
		Check: func(*Call) error {
			if last < 1 || last > judge.MaxHistory {
				return core.Invalid("last", last, fmt.Sprintf("1-%d", judge.MaxHistory))
			}
			return nil
		},
	}, arg("ID", "policy"), func(ctx context.Context, c *Call, id string) (judge.BacktestReport, error) {
		return c.Judge.BacktestPolicy(ctx, c.By, id, last)
	})
}

func policyDecide() *Op {
	var input core.Raw
	var policy string
	return define(Op{
		Name: "policy decide", Short: "Ask the policy about an input, without effect", Effect: Reads,
		Long: "Ask the policy about an input, without effect: which rule decides, and what it read. The input is\n" +
			"{action: {server, tool, args, kind}, agent, context: {gate, actor_kind …}} or {name, arguments}.",
		Example: `policy decide --input '{"action":{"tool":"fs.write","args":{"path":"/tmp/x"}}}'`,
		Tool:    Tool{Name: "decide_policy", About: "Ask the policy that rules what it would decide, without effect: which rule decides, and what it read."},
		Params: []*Param{
			need(&input, "input", "what to decide: `JSON`, @file, - for stdin").
				client(`what to decide: {"action":{"server","tool","args","kind"},"agent","context":{"gate","actor_kind"}} or {"name":"SERVER_TOOL","arguments"}`),
			flag(&policy, "policy", "ask the policy of this `ID` (default the active one)").from("policy"),
		},
	}, func(ctx context.Context, c *Call) (judge.Explanation, error) {
		return c.Judge.Explain(ctx, c.By.Tenant, policy, input)
	})
}
