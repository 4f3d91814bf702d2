package command

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"swarmdeck/engine/judge"
	"swarmdeck/engine/op"
	"swarmdeck/ui/term"
)

// showCard prints an approval, and below it what its files hold.
func showCard(c *call, card judge.Approval) error {
	return c.print(card, func(w io.Writer) error {
		bare := card
		bare.Action.Files = nil
		err := details(w, bare)
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
		if err != nil || c.g.Output != "text" {
			return err
		}
		call := c.forOp()
		why, err := call.CauseOf(c.ctx, "approval", card)
		fmt.Fprintln(w)
		putLines(w, why)
		return err
	})
}

// halfApproved prints approvals of which some need another one, or made a rule, and says so.
func halfApproved(c *call, o *op.Op, out any) (bool, error) {
	all, is := out.([]judge.Approval)
	if !is || c.g.Output == "json" || !slices.ContainsFunc(all, func(a judge.Approval) bool { return a.Status == judge.Open || a.Always != "" }) {
		return false, nil
	}
	if err := c.list(all); err != nil {
		return true, err
	}
	return true, c.say(all, "%s", o.Sentence(all))
}
