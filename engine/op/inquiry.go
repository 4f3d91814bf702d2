package op

import (
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// approvalAsk asks whoever wants something, before they are answered.
func approvalAsk() *Op {
	var text string
	return change(Op{
		Name: "approval ask", Short: "Ask who wants it a question, before you answer", Role: Approver, Done: "asked about",
		Long: "Ask the agent or the person who wants it. What they say stands on the card. The deadline stays where it is, and nothing\n" +
			"is decided. An agent that hears nothing while it waits is denied with the question as the reason instead.",
		Example: "approval ask ap_… 'why not in a branch?'",
		Params:  []*Param{place(&text, "TEXT", "").bounds(1, 1024)},
	}, arg("ID", "approval:open"), func(ctx context.Context, c *Call, id string) (judge.Approval, error) {
		return c.Judge.Inquire(ctx, c.By, id, text)
	})
}

// approvalReply answers such a question.
func approvalReply() *Op {
	var text string
	return change(Op{
		Name: "approval reply", Short: "Say something to a question about what you asked for", Done: "replied about",
		Params: []*Param{place(&text, "TEXT", "").bounds(1, 4096)},
		Tool:   Tool{Name: "reply_approval", About: "Say something to a question that a person asked about an approval that you wait for."},
	}, arg("ID", "approval:open"), func(ctx context.Context, c *Call, id string) (judge.Approval, error) {
		return c.Judge.Reply(ctx, c.By, id, text)
	})
}

// approvalWithdraw takes an ask back.
func approvalWithdraw() *Op {
	return changeWhy(Op{
		Name: "approval withdraw", Short: "Take back what you asked for", Done: "withdrew",
		Tool: Tool{Name: "withdraw_approval", About: "Take back an approval that you asked for and no longer want."},
	}, arg("ID", "approval:open"), func(ctx context.Context, c *Call, id, reason string) (judge.Approval, error) {
		return c.Judge.Recall(ctx, c.By, id, core.ClipTo(reason, 4096))
	})
}
