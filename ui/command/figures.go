package command

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/judge"
)

// operatorFigures shows how the operators answer approvals.
func (t *tree) operatorFigures() *cobra.Command {
	var since string
	var from time.Time
	return t.command(spec{
		use: "figures", short: "Show how operators answer: share approved, time to decide, canaries", effect: Reads,
		long: "Show for each operator who answered since then: how many answers, the share approved, edits and denials, the time\n" +
			"from the card being shown to the answer (median and 90 %), answers within 2 s at high risk, and canaries approved.\n" +
			"Answers from scripts have no time. See `approval canary`.",
		example: "operator figures --since 24h",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&since, "since", "168h", "from when on: a `TIME` (RFC 3339) or a duration such as 24h")
		},
		check: func(c *call, _ []string) (err error) {
			from, err = c.instant("since", since)
			return err
		},
		run: func(c *call, _ []string) error {
			all, whole, err := c.eng.Judge.Figures(c.ctx, c.by.Tenant, from)
			if err != nil {
				return err
			}
			if !whole {
				fmt.Fprintln(c.env.Stderr, "only the newest approvals were looked at: there are more since then")
			}
			return list(c, core.Page[judge.Figures]{Items: all}, figureColumns(c))
		},
	})
}

func figureColumns(*call) []column[judge.Figures] {
	type F = judge.Figures
	count := func(title string, of func(F) int) column[F] {
		return column[F]{title: title, right: true, text: func(f F) string { return strconv.Itoa(of(f)) }}
	}
	span := func(title string, of func(F) *float64) column[F] {
		return column[F]{title: title, right: true, text: func(f F) string {
			if v := of(f); v != nil {
				return fmt.Sprintf("%.1fs", *v)
			}
			return ""
		}}
	}
	return []column[F]{
		{title: "OPERATOR", text: func(f F) string { return f.Operator }},
		count("ANSWERED", func(f F) int { return f.Answered }),
		{title: "APPROVED", right: true, text: func(f F) string {
			if f.Answered == 0 {
				return ""
			}
			return fmt.Sprintf("%.0f%%", 100*f.ApprovedShare)
		}},
		count("EDITED", func(f F) int { return f.Edited }),
		count("DENIED", func(f F) int { return f.Denied }),
		span("MEDIAN", func(f F) *float64 { return f.MedianS }),
		span("P90", func(f F) *float64 { return f.P90S }),
		count("HASTY", func(f F) int { return f.Hasty }),
		{title: "CANARIES MISSED", right: true, text: func(f F) string { return fmt.Sprintf("%d of %d", f.CanariesMissed, f.Canaries) }},
		{title: "DENY REASONS", wide: true, text: func(f F) string { return strings.Join(f.Reasons, "; ") }},
	}
}
