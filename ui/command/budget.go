package command

import (
	"fmt"
	"time"

	"swarmdeck/engine/budget"
)

func budgetColumns(c *call) []column[budget.Budget] {
	of := func(used, limit string, unlimited bool) string {
		if unlimited {
			return used
		}
		return used + "/" + limit
	}
	return []column[budget.Budget]{
		{title: "SUBJECT", text: func(b budget.Budget) string { return b.Subject }},
		{title: "TOKENS", right: true, text: func(b budget.Budget) string {
			return of(fmt.Sprint(b.Used.Tokens), fmt.Sprint(b.Tokens), b.Tokens == 0)
		}},
		{title: "COST", right: true, text: func(b budget.Budget) string {
			return of(fmt.Sprintf("$%.2f", b.Used.CostUSD), fmt.Sprintf("$%.2f", b.CostUSD), b.CostUSD == 0)
		}},
		{title: "TASKS", right: true, text: func(b budget.Budget) string {
			return of(fmt.Sprint(b.Used.Tasks), fmt.Sprint(b.Tasks), b.Tasks == 0)
		}},
		{title: "TIME", right: true, text: func(b budget.Budget) string {
			return of(short(time.Duration(b.Used.WallMS)*time.Millisecond), short(time.Duration(b.WallS)*time.Second), b.WallS == 0)
		}},
		{title: "REACHED", text: func(b budget.Budget) string { return b.Reached }},
		{title: "UPDATED", wide: true, text: func(b budget.Budget) string { return stamp(b.UpdatedAt) }},
	}
}
