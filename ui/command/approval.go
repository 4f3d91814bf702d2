package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/op"
	"swarmdeck/ui/term"
)

// showCard prints an approval, and below it what its files hold.
func showCard(c *call, o *op.Op, out any) (bool, error) {
	card, is := out.(judge.Approval)
	if !is || !o.Full {
		return false, nil
	}
	return true, c.print(card, func(w io.Writer) error {
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

func approvalColumns(c *call) []column[judge.Approval] {
	type A = judge.Approval
	return []column[A]{
		{title: "APPROVAL", text: func(a A) string { return a.ApprovalID }},
		{title: "STATUS", text: func(a A) string { return string(a.Status) }},
		{title: "RISK", text: func(a A) string { return string(a.Risk) }},
		{title: "AGENT", text: func(a A) string { return a.Agent.Name }},
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
		{title: "WHAT", most: 72, text: func(a A) string { return term.Reveal(a.Subject.Headline) }},
	}
}

// halfApproved prints approvals of which some need another one, and says so.
func halfApproved(c *call, o *op.Op, out any) (bool, error) {
	all, is := out.([]judge.Approval)
	if !is || c.g.Output == "json" || !slices.ContainsFunc(all, func(a judge.Approval) bool { return a.Status == judge.Open }) {
		return false, nil
	}
	if err := list(c, core.Page[judge.Approval]{Items: all}, approvalColumns(c)); err != nil {
		return true, err
	}
	return true, c.say(all, "%s", o.Sentence(all))
}
