package command

import (
	"fmt"
	"io"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/op"
	"swarmdeck/ui/term"
)

// What people read of a test, a backtest and a question. With -o json they get
// what the engine says.

// showTest fails when a case does.
func showTest(c *call, t op.TestedPolicy) error {
	err := c.print(t, func(w io.Writer) error {
		if len(t.Cases) > 0 {
			c.table(w, nil, t.Cases)
		}
		for _, r := range t.Cases {
			if r.Passed {
				continue
			}
			for _, said := range []string{r.Rationale, r.Stderr} {
				if said != "" {
					fmt.Fprintf(w, "%s: %s\n", term.Clean(r.Name), term.Cut(term.Clean(said), 300))
				}
			}
		}
		how := ""
		if t.Unsandboxed {
			how = ", without a jail: this system can't make one"
		}
		switch {
		case t.Summary.Total == 0:
			fmt.Fprintln(w, "no cases: without any it can't be activated")
		case t.Summary.Failed == 0:
			fmt.Fprintf(w, "%d of %d cases pass%s\n", t.Summary.Total, t.Summary.Total, how)
		default:
			fmt.Fprintf(w, "%d of %d cases FAIL%s\n", t.Summary.Failed, t.Summary.Total, how)
		}
		return nil
	})
	if err == nil && t.Summary.Failed > 0 {
		err = &ExitError{Code: ExitFailed}
	}
	return err
}

func showBacktest(c *call, r judge.BacktestReport) error {
	return c.print(r, func(w io.Writer) error {
		if len(r.Groups) > 0 {
			c.table(w, nil, r.Groups)
		}
		more := ""
		if r.Unknown > 0 {
			more += fmt.Sprintf(" %d can't be made anew: what they were about was not kept.", r.Unknown)
		}
		if r.Sampled {
			more += " Only some were: a program that stays (--serve) tries them all."
		}
		fmt.Fprintf(w, "%d of %d decisions would change; the last %d were looked at.%s\n", r.Flips, r.Checked, r.Last, more)
		return nil
	})
}

func showExplanation(c *call, e judge.Explanation) error {
	if c.g.Output == "json" {
		return c.show(e)
	}
	return c.show(struct {
		judge.Explanation `json:",embed"`
		Values            core.Raw `json:"values,omitzero"`
		Tried             string   `json:"tried,omitempty"`
	}{e, valuesText(e.Values), strings.Join(e.Tried, ", ")})
}

// valuesText is what a rule read; none where it read nothing.
func valuesText(v map[string]any) core.Raw {
	if len(v) == 0 {
		return nil
	}
	return core.MustEncode(v)
}
