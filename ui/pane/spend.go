package pane

import (
	"fmt"

	"swarmdeck/engine/fleet"
)

// Tokens is a number of tokens in a few characters: 950, 12.3k, 4.5M; "" for
// none.
func Tokens(n int64) string {
	switch {
	case n <= 0:
		return ""
	case n < 1000:
		return fmt.Sprint(n)
	case n < 999_950:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	case n < 999_950_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1fG", float64(n)/1e9)
}

// Context is how full a context is: a share, or tokens where its size is not known; "" for
// what nobody told.
func Context(c fleet.Context) string {
	if c.Size <= 0 {
		return Tokens(c.Used)
	}
	return fmt.Sprintf("%d%%", min(100*c.Used/c.Size, 999))
}

// Cost is an amount of dollars; "" for none, and never none for some.
func Cost(usd float64) string {
	switch {
	case usd <= 0:
		return ""
	case usd < 0.01:
		return "<$0.01"
	case usd < 1000:
		return fmt.Sprintf("$%.2f", usd)
	}
	return fmt.Sprintf("$%.0f", usd)
}
