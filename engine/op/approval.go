package op

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

func approvals() []*Op {
	id := arg("ID", "approval")
	return []*Op{
		approvalList(),
		show(Op{Name: "approval show", Short: "Show exactly what would be done, by whom and why it was asked", ForAgents: true, Tool: Tool{Name: "show_approval"}}, id,
			func(ctx context.Context, c *Call, id string) (judge.Approval, error) {
				return c.Judge.Card(ctx, c.By.Tenant, id)
			}),
		show(Op{Name: "approval why", Short: "Say why a person is asked: which rule, of which version, and what it read"}, id, grounds),
		approvalApprove(),
		approvalDeny(),
		approvalDefer(),
		approvalEscalate(),
		approvalCanary(),
	}
}

// ApprovalStatuses are the values of an approval's status.
func ApprovalStatuses() []string {
	return core.Strings(judge.Open, judge.Approved, judge.Refused, judge.Expired, judge.Voided)
}

func approvalList() *Op {
	var open bool
	var o *Op
	o = list(Op{
		Name: "approval list", Short: "List the approvals, newest first", Example: "approval list --open", ForAgents: true,
		Statuses: ApprovalStatuses(), Tool: Tool{Name: "list_approvals"},
		Params: []*Param{flag(&open, "open", "only those that wait for an answer")},
		Check: func(*Call) error {
			if status := o.Filter.Status; open && status != "" && status != string(judge.Open) {
				return usage("open", "--open and --status %s exclude each other", status)
			}
			return nil
		},
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[judge.Approval], error) {
		if open {
			f.Status = string(judge.Open)
		}
		return c.Judge.Approvals(ctx, c.By.Tenant, f)
	})
	return o
}

// answer makes an operation that answers an open approval. What binds the
// answer to what was seen is among its parameters.
func answer(o Op, a *judge.Answer) *Op {
	o.Role, o.Confirm = Approver, ConfirmAsk
	o.Params = append(o.Params,
		flag(&a.Digest, "digest", "answer only if the approval still has this digest (`HEX`)"),
		flag(&a.ShownAt, "shown", "when the card was shown, RFC 3339 `TIME`"))
	return change(o, arg("ID", "approval:open"), func(ctx context.Context, c *Call, id string) (judge.Approval, error) {
		return c.Judge.Answer(ctx, c.By, id, *a)
	})
}

func approvalApprove() *Op {
	a := judge.Answer{Approve: true}
	var always judge.Always
	expires := flag(&always.Expires, "expires", "the rule ends after this `DURATION`, at most 30d")
	uses := flag(&always.MaxUses, "max-uses", "the rule may be used `N` times, 1-1000")
	return answer(Op{
		Name: "approval approve", Short: "Let it happen, once", Done: "approved",
		Long: "Approve exactly what the approval shows. --edit replaces the arguments and judges them again.\n" +
			"--always makes a rule for the same shape: exact (same arguments), tool (same action), agent, session,\n" +
			"run (same action in this run of the task).",
		Example: "approval approve ap_… --reason 'read it'\napproval approve ap_… --always tool --expires 1h --max-uses 10",
		Params: []*Param{
			flag(&a.Reason, "reason", "why (needed when the risk is high)"),
			flag(&a.Edit, "edit", "run with these arguments instead: `JSON`, @file, -").from("json"),
			flag(&always.Scope, "always", "also make a rule of this `SCOPE`: exact|tool|agent|session|run").enum("exact", "tool", "agent", "session", "run"),
			expires, uses,
		},
		Check: func(*Call) error {
			switch {
			case always.Scope == "" && (expires.Given || uses.Given):
				return usage("always", "--expires and --max-uses belong to --always SCOPE")
			case always.Scope != "" && !(expires.Given && uses.Given):
				return usage("always", "--always needs --expires and --max-uses")
			case always.Scope != "":
				a.Always = &always
			}
			return nil
		},
	}, &a)
}

func approvalDeny() *Op {
	var a judge.Answer
	return answer(Op{
		Name: "approval deny", Short: "Refuse it; the agent is told and goes on, or ends with --abort", Done: "denied",
		Example: "approval deny ap_… --reason 'not in this directory'",
		Params: []*Param{
			need(&a.Reason, "reason", "why; the agent is told"),
			flag(&a.Abort, "abort", "also end the task as blocked"),
		},
	}, &a)
}

func approvalDefer() *Op {
	var d time.Duration
	return change(Op{
		Name: "approval defer", Short: "Put it off; the deadline moves with it", Role: Approver, Done: "put off",
		Params: []*Param{need(&d, "for", "how long: `DURATION`")},
	}, arg("ID", "approval:open"), func(ctx context.Context, c *Call, id string) (judge.Approval, error) {
		return c.Judge.Defer(ctx, c.By, id, d)
	})
}

func approvalEscalate() *Op {
	var to string
	return changeWhy(Op{
		Name: "approval escalate", Short: "Ask someone else to answer", Role: Approver, Done: "escalated",
		Params: []*Param{need(&to, "to", "operator `NAME`")},
		Check:  func(*Call) error { return CheckOperator("to", to) },
	}, arg("ID", "approval:open"), func(ctx context.Context, c *Call, id, reason string) (judge.Approval, error) {
		return c.Judge.Escalate(ctx, c.By, id, to, reason)
	})
}

func approvalCanary() *Op {
	risk := string(judge.Medium)
	return define(Op{
		Name: "approval canary", Short: "Ask a fake question to see whether somebody reads it", Role: Admin, Done: "asked",
		Long: "Ask a question whose right answer is deny, to see whether approvals are read. Nobody started it and nothing runs\n" +
			"whatever the answer; its record and its audit events say that it is a canary (gate canary). `operator figures`\n" +
			"counts who approved one; your own answer to it does not count.",
		Params: []*Param{flag(&risk, "risk", "how risky it looks: low|medium|high").enum("low", "medium", "high")},
	}, func(ctx context.Context, c *Call) (judge.Approval, error) {
		return c.Judge.Canary(ctx, c.By, judge.Risk(risk))
	})
}

// CheckOperator reports a name that a log or a list could not show.
func CheckOperator(field, name string) error {
	hidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if n := utf8.RuneCountInString(name); n < 1 || n > 64 || !utf8.ValidString(name) || strings.TrimSpace(name) != name || strings.ContainsFunc(name, hidden) {
		return core.Invalid(field, name, "an operator's name: 1-64 printable characters without space around them")
	}
	return nil
}
