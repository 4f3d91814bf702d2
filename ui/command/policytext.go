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
func (c *call) showTest(t op.TestedPolicy) error {
	err := c.print(t, func(w io.Writer) error {
		if len(t.Cases) > 0 {
			table(w, t.Cases, caseColumns(), c.g.Output == "wide")
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

func caseColumns() []column[judge.CaseResult] {
	type R = judge.CaseResult
	return []column[R]{
		{title: "CASE", most: 28, text: func(r R) string { return r.Name }},
		{title: "LINE", right: true, text: func(r R) string { return fmt.Sprint(r.Line) }},
		{title: "RESULT", text: func(r R) string { return map[bool]string{true: "pass", false: "FAIL"}[r.Passed] }},
		{title: "WANT", text: func(r R) string { return strings.TrimSpace(r.Want.Decision + " " + r.Want.ReasonCode) }},
		{title: "GOT", text: func(r R) string { return r.Decision + " " + r.ReasonCode }},
		{title: "RULE", wide: true, text: func(r R) string { return r.RuleID }},
		{title: "RATIONALE", wide: true, text: func(r R) string { return r.Rationale }},
	}
}

func (c *call) showBacktest(r judge.BacktestReport) error {
	return c.print(r, func(w io.Writer) error {
		if len(r.Groups) > 0 {
			table(w, r.Groups, flipColumns(), c.g.Output == "wide")
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

func flipColumns() []column[judge.Flip] {
	type F = judge.Flip
	return []column[F]{
		{title: "FROM", text: func(f F) string { return f.From }},
		{title: "TO", text: func(f F) string { return f.To }},
		{title: "COUNT", right: true, text: func(f F) string { return fmt.Sprint(f.Count) }},
		{title: "GATE", text: func(f F) string { return string(f.Gate) }},
		{title: "WHAT", most: 16, text: func(f F) string { return f.Tool }},
		{title: "BECAUSE", most: 24, text: func(f F) string { return f.Reason }},
		{title: "RULE", wide: true, text: func(f F) string { return f.RuleID }},
		{title: "FOR EXAMPLE", most: 20, text: func(f F) string { return strings.Join(f.Examples, " ") }},
	}
}

func (c *call) showExplanation(e judge.Explanation) error {
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
