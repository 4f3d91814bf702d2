package pane

import (
	"fmt"
	"strconv"

	"swarmdeck/engine/face"
	"swarmdeck/engine/fleet"
)

// Context is how full a context is: a share, or tokens where its size is not known; "" for
// what nobody told.
func Context(c fleet.Context) string {
	if c.Size <= 0 {
		return face.Tokens(c.Used)
	}
	return fmt.Sprintf("%d%%", min(100*c.Used/c.Size, 999))
}

// Plural says how many of something there are.
func Plural[N int | int64 | uint64](n N, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case what == "person":
		return fmt.Sprintf("%d people", n)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Some is a number, "" for none.
func Some(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
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
