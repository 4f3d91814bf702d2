package command

import (
	"fmt"
	"io"

	"swarmdeck/engine/audit"
	"swarmdeck/engine/op"
	"swarmdeck/ui/term"
)

// showReport prints what became of the log's proof.
func showReport(c *call, r audit.Report) error {
	return c.print(r, func(w io.Writer) error { return reportText(w, r) })
}

// reportText is a report for people: its lists a line for each.
func reportText(w io.Writer, r audit.Report) error {
	bare := r
	bare.Keys, bare.Witnesses, bare.Problems = nil, nil, nil
	if err := details(w, bare); err != nil {
		return err
	}
	for _, k := range r.Keys {
		to, by := "on", "the first"
		if k.Last > 0 {
			to = fmt.Sprintf("to %d", k.Last)
		}
		if k.Unsigned {
			by = "UNSIGNED"
		} else if k.SignedBy != "" {
			by = "signed by " + k.SignedBy
		}
		fmt.Fprintln(w, term.Clean(fmt.Sprintf("key        %s from event %d %s, %s", k.KeyID, k.First, to, by)))
	}
	for _, x := range r.Witnesses {
		fmt.Fprintln(w, term.Clean(fmt.Sprintf("witness    %s: %d checkpoints, the newest of %d events", x.Witness, x.Checkpoints, x.Newest)))
	}
	for _, p := range r.Problems {
		fmt.Fprintln(w, term.Clean("problem    "+p))
	}
	return nil
}

func showDeltas(c *call, all op.Deltas) error {
	if len(all) == 0 {
		if c.g.Output == "json" {
			return nil
		}
		return c.say(nil, "no unexplained difference")
	}
	return c.list([]audit.Delta(all))
}
