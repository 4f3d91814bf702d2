package command

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/ui/term"
)

func (t *tree) approvals() *cobra.Command {
	return t.group("approval", "Questions that wait for a person",
		t.approvalList(),
		t.command(spec{
			use: "show ID", short: "Show exactly what would be done, by whom and why it was asked", effect: Reads, args: []string{"approval"},
			run: showCard,
		}),
		t.grounds("why ID", "Say why a person is asked: which rule, of which version, and what it read", "approval"),
		t.approvalApprove(),
		t.approvalDeny(),
		t.approvalDefer(),
		t.approvalEscalate(),
		t.approvalCanary(),
	)
}

// showCard prints an approval, and below it what its files hold.
func showCard(c *call, args []string) error {
	card, err := c.eng.Judge.Card(c.ctx, c.by.Tenant, args[0])
	if err != nil {
		return err
	}
	return c.print(card, func(w io.Writer) error {
		bare := card
		bare.Action.Files = nil
		data, err := core.Encode(bare)
		if err == nil {
			err = details(w, data)
		}
		for i := 0; i < len(card.Action.Files) && err == nil; i++ {
			f := &card.Action.Files[i]
			if _, err = fmt.Fprintf(w, "\nfile  %s\n", term.Reveal(f.Line())); f.Diff+f.Text == "" || err != nil {
				continue
			}
			for line := range strings.SplitSeq(strings.TrimSuffix(f.Diff+f.Text, "\n"), "\n") {
				if _, err = fmt.Fprintf(w, "  %s\n", term.Reveal(line)); err != nil {
					break
				}
			}
		}
		return err
	})
}

func approvalStates() []string {
	return words(judge.Open, judge.Approved, judge.Refused, judge.Expired, judge.Voided)
}

func (t *tree) approvalList() *cobra.Command {
	var open bool
	return lists(t, spec{
		use: "list", short: "List the approvals, newest first", effect: Reads,
		example: "approval list --open",
		flags:   func(f *pflag.FlagSet) { f.BoolVar(&open, "open", false, "only those that wait for an answer") },
		check: func(c *call, _ []string) error {
			if status := c.flag("status"); open && status != "" && status != string(judge.Open) {
				return usage("open", "--open and --status %s exclude each other", status)
			}
			return nil
		},
	}, approvalStates(), approvalColumns,
		func(c *call, f core.Filter) (core.Page[judge.Approval], error) {
			if open {
				f.Status = string(judge.Open)
			}
			return c.eng.Judge.Approvals(c.ctx, c.by.Tenant, f)
		})
}

// seen are the flags that bind an answer to what the operator saw.
type seen struct {
	digest, shown string
}

func (s *seen) bind(f *pflag.FlagSet) {
	f.StringVar(&s.digest, "digest", "", "answer only if the approval still has this digest (`HEX`)")
	f.StringVar(&s.shown, "shown", "", "when the card was shown, RFC 3339 `TIME`")
}

func (s *seen) fill(a *judge.Answer) error {
	a.Digest = s.digest
	if s.shown == "" {
		return nil
	}
	at, err := time.Parse(time.RFC3339Nano, s.shown)
	if err != nil {
		return usage("shown", "--shown: %q is not allowed; allowed: a time like 2026-01-02T15:04:05.678Z", clip(s.shown))
	}
	a.ShownAt = at.UTC()
	return nil
}

func (t *tree) approvalApprove() *cobra.Command {
	var s seen
	var a judge.Answer
	var edit string
	var always judge.Always
	return t.command(spec{
		use: "approve ID", short: "Let it happen, once", effect: Writes, role: Approver, confirm: ConfirmAsk, args: []string{"approval:open"},
		long: "Approve exactly what the approval shows. --edit replaces the arguments and judges them again.\n" +
			"--always makes a rule for the same shape: exact (same arguments), tool (same action), agent, session,\n" +
			"run (same action in this run of the task).",
		example: "approval approve ap_… --reason 'read it'\napproval approve ap_… --always tool --expires 1h --max-uses 10",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&a.Reason, "reason", "", "why (needed when the risk is high)")
			f.StringVar(&edit, "edit", "", "run with these arguments instead: `JSON`, @file, -")
			enumVar(f, &always.Scope, "always", "", "", "also make a rule of this `SCOPE`: exact|tool|agent|session|run", "exact", "tool", "agent", "session", "run")
			spanVar(f, &always.Expires, "expires", "the rule ends after this `DURATION`, at most 30d")
			f.IntVar(&always.MaxUses, "max-uses", 0, "the rule may be used `N` times, 1-1000")
			s.bind(f)
			source(f, "edit", "json")
		},
		check: func(c *call, _ []string) (err error) {
			a.Approve = true
			if err := s.fill(&a); err != nil {
				return err
			}
			if c.flags.Changed("edit") {
				if a.Edit, err = c.document("edit", edit); err != nil {
					return err
				}
			}
			limits := c.flags.Changed("expires") && c.flags.Changed("max-uses")
			switch {
			case always.Scope != "" && !limits:
				return usage("always", "--always needs --expires and --max-uses")
			case always.Scope == "" && (c.flags.Changed("expires") || c.flags.Changed("max-uses")):
				return usage("always", "--expires and --max-uses belong to --always SCOPE")
			case always.Scope != "":
				a.Always = &always
			}
			return nil
		},
		run: func(c *call, args []string) error {
			answered, err := c.eng.Judge.Answer(c.ctx, c.by, args[0], a)
			if err != nil {
				return err
			}
			if err := record(c, answered, approvalColumns(c)); err != nil || answered.Status != judge.Open || c.g.Output == "json" {
				return err
			}
			return c.say(nil, "still open: at %s risk a second operator must approve it too, after %s", answered.Risk, answered.FirstBy)
		},
	})
}

func (t *tree) approvalDeny() *cobra.Command {
	var s seen
	var a judge.Answer
	return t.command(spec{
		use: "deny ID", short: "Refuse it; the agent is told and goes on, or ends with --abort", effect: Writes, role: Approver, confirm: ConfirmAsk,
		args:    []string{"approval:open"},
		example: "approval deny ap_… --reason 'not in this directory'",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&a.Reason, "reason", "", "why; the agent is told")
			f.BoolVar(&a.Abort, "abort", false, "also end the task as blocked")
			s.bind(f)
		},
		check: func(*call, []string) error {
			if strings.TrimSpace(a.Reason) == "" {
				return usage("reason", "approval deny: --reason is missing")
			}
			return s.fill(&a)
		},
		run: changes(approvalColumns, func(c *call, id string) (judge.Approval, error) { return c.eng.Judge.Answer(c.ctx, c.by, id, a) }),
	})
}

func (t *tree) approvalDefer() *cobra.Command {
	var d time.Duration
	return t.command(spec{
		use: "defer ID", short: "Put it off; the deadline moves with it", effect: Writes, role: Approver, args: []string{"approval:open"},
		flags: func(f *pflag.FlagSet) { spanVar(f, &d, "for", "how long: `DURATION`") },
		check: func(*call, []string) error {
			if d == 0 {
				return usage("for", "approval defer: --for is missing; allowed: a duration like 15m")
			}
			return nil
		},
		run: changes(approvalColumns, func(c *call, id string) (judge.Approval, error) { return c.eng.Judge.Defer(c.ctx, c.by, id, d) }),
	})
}

func (t *tree) approvalEscalate() *cobra.Command {
	var to string
	return t.command(spec{
		use: "escalate ID", short: "Ask someone else to answer", effect: Writes, role: Approver, args: []string{"approval:open"},
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&to, "to", "", "operator `NAME`")
			withReason(f)
		},
		check: func(*call, []string) error {
			if to == "" {
				return usage("to", "approval escalate: --to is missing")
			}
			return checkOperator("to", to)
		},
		run: changes(approvalColumns, func(c *call, id string) (judge.Approval, error) {
			return c.eng.Judge.Escalate(c.ctx, c.by, id, to, c.reason())
		}),
	})
}

func action(a judge.Action) string {
	if a.Tool != "" {
		return a.Tool
	}
	return a.Kind
}

func approvalColumns(c *call) []column[judge.Approval] {
	type A = judge.Approval
	return []column[A]{
		{title: "APPROVAL", text: func(a A) string { return a.ApprovalID }},
		{title: "STATUS", text: func(a A) string { return string(a.Status) }},
		{title: "RISK", text: func(a A) string { return string(a.Risk) }},
		{title: "AGENT", text: func(a A) string { return a.Agent.Name }},
		{title: "ACTION", most: 24, text: func(a A) string { return action(a.Action) }},
		{title: "AGE", right: true, text: func(a A) string { return c.age(a.CreatedAt) }},
		{title: "LEFT", right: true, text: func(a A) string {
			if a.Status != judge.Open {
				return ""
			}
			ends, _ := a.Ends()
			return short(max(0, ends.Sub(c.now())))
		}},
		{title: "GATE", wide: true, text: func(a A) string { return string(a.Gate) }},
		{title: "RULE", wide: true, text: func(a A) string { return a.RuleID }},
		{title: "TASK", wide: true, text: func(a A) string { return a.TaskID }},
		{title: "DIGEST", wide: true, text: func(a A) string { return a.Digest }},
		{title: "BY", wide: true, text: func(a A) string { return a.AnsweredBy }},
		{title: "ANSWERED", wide: true, text: func(a A) string { return stamp(a.AnsweredAt) }},
		{title: "REASON", wide: true, text: func(a A) string { return a.AnswerReason }},
		{title: "INTENT", most: 48, text: func(a A) string { return a.Intent }},
	}
}
