package command

import (
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/engine/judge"
)

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
