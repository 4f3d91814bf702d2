package pane

import (
	"fmt"
	"strings"
	"time"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/face"
)

// BudgetText is what a budget's subject has used of each limit.
func BudgetText(b budget.Budget) string {
	var parts []string
	if b.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d/%d tokens", b.Used.Tokens, b.Tokens))
	}
	if b.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("$%.2f/$%.2f", b.Used.CostUSD, b.CostUSD))
	}
	if b.Tasks > 0 {
		parts = append(parts, fmt.Sprintf("%d/%d tasks", b.Used.Tasks, b.Tasks))
	}
	if b.WallS > 0 {
		parts = append(parts, fmt.Sprintf("%s/%s", face.Span(time.Duration(b.Used.WallMS)*time.Millisecond), face.Span(time.Duration(b.WallS)*time.Second)))
	}
	text := strings.Join(parts, "  ")
	if b.Reached != "" {
		text += "  (" + b.Reached + " reached)"
	}
	return text
}

// BudgetShare is the largest used share of a budget's limits, 0 when it has
// no limit; it may exceed 1.
func BudgetShare(b budget.Budget) float64 {
	share := 0.0
	for _, p := range [][2]float64{
		{float64(b.Used.Tokens), float64(b.Tokens)},
		{b.Used.CostUSD, b.CostUSD},
		{float64(b.Used.Tasks), float64(b.Tasks)},
		{float64(b.Used.WallMS) / 1000, float64(b.WallS)},
	} {
		if p[1] > 0 {
			share = max(share, p[0]/p[1])
		}
	}
	return share
}

// Confidence is a confidence with its band: above 0.90 the judge approves,
// from 0.70 a person is asked, below it is rejected and tried again. "" is none.
func Confidence(c *float64) string {
	switch {
	case c == nil:
		return ""
	case *c > 0.9:
		return fmt.Sprintf("%.2f (high)", *c)
	case *c >= 0.7:
		return fmt.Sprintf("%.2f (middle: a person decides)", *c)
	}
	return fmt.Sprintf("%.2f (low)", *c)
}
