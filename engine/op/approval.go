package op

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/operator"
	"swarmdeck/store"
)

func approvals() []*Op {
	id := arg("ID", "approval")
	return []*Op{
		approvalList(),
		show(Op{Name: "approval show", Short: "Show exactly what would be done, by whom and why it was asked", ForAgents: true, Tool: Tool{Name: "show_approval"}}, id,
			func(ctx context.Context, c *Call, id string) (judge.Approval, error) {
				a, err := c.Judge.Card(ctx, c.By.Tenant, id)
				if err == nil && a.Status == judge.Open && c.By.Kind == core.Operator && c.Role.Includes(Approver) {
					// Where only reading is possible nobody can answer either.
					if err = c.Judge.Shown(ctx, c.By, id); errors.Is(err, store.ErrReadOnly) {
						err = nil
					}
				}
				return a, err
			}),
		show(Op{Name: "approval why", Short: "Say why a person is asked: which rule, of which version, and what it read"}, id, grounds),
		approvalApprove(),
		approvalDeny(),
		approvalStatement(),
		approvalAnswer(),
		approvalDefer(),
		approvalEscalate(),
		approvalAsk(),
		approvalReply(),
		approvalWithdraw(),
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
		Name: "approval list", Short: "List the approvals, newest first; the open ones, most urgent first", Example: "approval list --open", ForAgents: true,
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

// answer makes an operation that answers open approvals, each for itself. What binds an
// answer to what was seen is among its parameters; they are for one approval.
func answer(o Op, a *judge.Answer) *Op {
	var ids []string
	check := o.Check
	o.Role, o.Confirm = Approver, ConfirmAsk
	o.Check = func(c *Call) error {
		if check != nil {
			if err := check(c); err != nil {
				return err
			}
		}
		switch one := a.Digest != "" || len(a.Edit) > 0 || len(a.Content) > 0 || a.Always != nil || !a.ShownAt.IsZero(); {
		case len(ids) < 2:
		case one:
			return usage("digest", "--digest, --shown, --edit, --content and --always are for one approval")
		case a.Reason == "":
			return usage("reason", "several approvals are answered with a reason: --reason")
		case len(ids) > mostAnswered:
			return core.Invalid("id", len(ids), fmt.Sprintf("at most %d approvals in one line", mostAnswered))
		}
		return nil
	}
	o.Params = append([]*Param{place(&ids, "ID…", "approval:open")}, append(o.Params,
		flag(&a.Digest, "digest", "answer only if the approval still has this digest (`HEX`)"),
		flag(&a.ShownAt, "shown", "when the card was shown, RFC 3339 `TIME`"),
		flag(&a.Key, "pressed", "the `KEY` that was pressed for it, for the record"))...)
	return define(o, func(ctx context.Context, c *Call) ([]judge.Approval, error) { return c.answer(ctx, ids, a) })
}

// mostAnswered is how many approvals one line answers.
const mostAnswered = 100

// answer answers each approval, whatever comes of the others. At high risk one is
// approved at a time: then none is.
func (c *Call) answer(ctx context.Context, ids []string, a *judge.Answer) (done []judge.Approval, err error) {
	if len(ids) > 1 && a.Approve {
		for _, id := range ids {
			open, err := c.Judge.Approval(ctx, c.By.Tenant, id)
			if err != nil {
				return nil, err
			}
			if open.Risk.AtLeast(judge.High) {
				return nil, core.Errorf(core.Denied, "approval %s: at %s risk one is approved at a time; none of these was", id, open.Risk).With("field", "id")
			}
		}
	}
	var failed []error
	for _, id := range ids {
		each := *a
		err := c.sign(ctx, id, &each)
		if err == nil {
			var answered judge.Approval
			if answered, err = c.Judge.Answer(ctx, c.By, id, each); err == nil {
				done = append(done, answered)
			}
		}
		if err != nil {
			failed = append(failed, err)
		}
	}
	switch {
	case len(failed) == 0:
		return done, nil
	case len(ids) == 1:
		return nil, failed[0]
	}
	first := core.AsError(failed[0])
	text := core.Map(failed, func(err error) string { return err.Error() })
	return done, &Failed{core.Errorf(first.Code, "%d of %d were not answered: %s", len(failed), len(ids), strings.Join(text, "; "))}
}

// sign has the caller sign an answer, where the tenant wants that and the caller's
// keys are at hand. It is refused by the judge otherwise.
func (c *Call) sign(ctx context.Context, id string, a *judge.Answer) error {
	if c.Sign == nil {
		return nil
	}
	terms, err := c.Judge.Terms(ctx, c.By.Tenant)
	if err != nil || terms.Sign == "" { // an edit is judged again for its statement
		return err
	}
	s, needed, err := c.Judge.Statement(ctx, c.By, id, *a)
	if err != nil || !needed {
		return err
	}
	who, err := c.Operators.Operator(ctx, c.By.Tenant, c.By.Name)
	if err != nil {
		return core.Errorf(core.Denied, "approval %s: the answer has to be signed, and %s has no key here (operator set)", id, c.By.Name).With("field", "signature")
	}
	c.Note("you sign: " + strings.TrimSpace(s.String()))
	a.SignedAt = s.At
	a.Signature, err = c.Sign(s.String(), who.Keys)
	return err
}

// approvalStatement prints what somebody signs elsewhere.
func approvalStatement() *Op {
	var a judge.Answer
	var word string
	return show(Op{
		Name: "approval statement", Short: "Print what is to be signed for an answer, to sign it anywhere",
		Long: "Print the statement of an answer. Sign it with a key of yours and give both to `approval answer` within ten minutes:\n" +
			"  ssh-keygen -Y sign -n " + judge.SignNamespace + " -f KEY statement",
		Example: "approval statement ap_… --answer approve --reason 'I looked' > statement",
		Params: []*Param{
			need(&word, "answer", "`approve|deny|abort`").enum("approve", "deny", "abort"),
			flag(&a.Reason, "reason", "why; a denial needs one, and an approval at high risk"),
			flag(&a.Edit, "edit", "with these arguments instead: `JSON`, @file, -").from("json"),
			flag(&a.Content, "content", "what a question is answered with: `JSON`, @file, -").from("json"),
		},
		Check: func(*Call) error {
			a.Approve, a.Abort = word == "approve", word == "abort"
			return nil
		},
	}, arg("ID", "approval:open"), func(ctx context.Context, c *Call, id string) (Told[judge.Statement], error) {
		s, _, err := c.Judge.Statement(ctx, c.By, id, a)
		return told(s, strings.TrimSuffix(s.String(), "\n")), err
	})
}

// approvalAnswer answers with a statement that was signed elsewhere.
func approvalAnswer() *Op {
	var text, signature []byte
	var given, by string
	var edit, content core.Raw
	var s judge.Statement
	return define(Op{
		Name: "approval answer", Short: "Answer with a signed statement", Effect: Writes, Role: Approver, Confirm: ConfirmAsk, Done: "answered",
		Long: "Answer as a statement of `approval statement` says, with the signature that ssh-keygen made of it. From another machine\n" +
			"the statement is given as it is, and the signature on stdin.",
		Example: "approval answer @statement --signature @statement.sig",
		Params: []*Param{
			{Name: "statement", About: "STATEMENT", Arg: true, Need: true, Into: &given},
			need(&by, "signature", "armored `SIGNATURE` of ssh-keygen -Y sign, @file, -"),
			flag(&edit, "edit", "with these arguments instead, as when it was stated: `JSON`, @file").from("json"),
			flag(&content, "content", "what a question is answered with, as when it was stated: `JSON`, @file").from("json"),
		},
		Check: func(c *Call) (err error) {
			if text, err = c.Read("statement", given); err != nil {
				return err
			}
			if signature, err = c.Read("signature", by); err != nil {
				return err
			}
			s, err = judge.ParseStatement(append(bytes.TrimSpace(text), '\n'))
			return err
		},
	}, func(ctx context.Context, c *Call) (judge.Approval, error) {
		if s.TenantID != c.By.Tenant || s.Operator != c.By.Name {
			return judge.Approval{}, core.Errorf(core.Denied, "statement: it is %s's in %s, you are %s in %s", s.Operator, s.TenantID, c.By.Name, c.By.Tenant).With("field", "statement")
		}
		a := s.Answered()
		a.Signature, a.Edit, a.Content = signature, edit, content
		if len(edit) > 0 {
			a.Digest = "" // it is that of what becomes of the edit, which the signature covers
		}
		return c.Judge.Answer(ctx, c.By, s.Approval, a)
	})
}

func approvalApprove() *Op {
	a := judge.Answer{Approve: true}
	always := judge.Always{Expires: judge.DefaultExpiry, MaxUses: judge.DefaultUses}
	terms := []*Param{
		flag(&always.Any, "any", anyAbout),
		flag(&always.Expires, "expires", "the rule ends after this `DURATION`, at most 30d"),
		flag(&always.MaxUses, "max-uses", "the rule may be used `N` times, 1-1000"),
		flag(&always.Digest, "rule-digest", "only if the rule is the one that was shown (`HEX`)"),
	}
	return answer(Op{
		Name: "approval approve", Short: "Let it happen, once", Done: "approved",
		Long: "Approve exactly what the approval shows. --edit replaces the arguments and judges them again.\n" +
			"--always also makes a rule: what it says in one line, as `approval show` does before, is what it lets pass. It is\n" +
			"for this agent, run of the task, session, project or anyone, and for exactly these arguments, but for the places that\n" +
			"--any names. --content answers a question: an object of its schema, or {\"option\":\"ID\"}; it approves nothing else.",
		Example: "approval approve ap_… --reason 'read it'\napproval approve ap_… ap_… --reason 'the nightly ones'\n" +
			"approval approve ap_… --always agent --any argv.2 --expires 1h --max-uses 10\napproval approve ap_… --content '{\"name\":\"Ada\"}'",
		Params: append([]*Param{
			flag(&a.Reason, "reason", "why (needed when the risk is high)"),
			flag(&a.Edit, "edit", "run with these arguments instead: `JSON`, @file, -").from("json"),
			flag(&a.Edited, "edited-digest", "only if the edit comes to this digest, as approval statement tells it (`HEX`)"),
			flag(&a.Content, "content", "answer a question with this: `JSON`, @file, -").from("json"),
			flag(&always.For, "always", "also make a rule for `agent|run|session|project|anyone`").enum(judge.Fors()...),
		}, terms...),
		Check: func(*Call) error {
			if always.For != "" {
				a.Always = &always
				return nil
			}
			for _, term := range terms {
				if term.Given {
					return usage("always", "--%s belongs to --always", term.Name)
				}
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
		Long:   "Hand an open approval on to an operator or a group of `operator set`. They alone may answer it from then on.",
		Params: []*Param{need(&to, "to", "operator or group `NAME`")},
		Check:  func(*Call) error { return operator.CheckName("to", to) },
	}, arg("ID", "approval:open"), func(ctx context.Context, c *Call, id, reason string) (judge.Approval, error) {
		return c.Judge.Escalate(ctx, c.By, id, to, reason)
	})
}
