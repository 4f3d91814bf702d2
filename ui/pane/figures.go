package pane

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/face"
	"swarmdeck/engine/fleet"
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

// Context is how full a context is: a share, or tokens where its size is not known; "" for
// what nobody told.
func Context(c fleet.Context) string {
	if c.Size <= 0 {
		return face.Tokens(c.Used)
	}
	return fmt.Sprintf("%d%%", min(100*c.Used/c.Size, 999))
}

// Joined are the parts that there are, with a sign between.
func Joined(between string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), between)
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

// Age is how long ago t was, in at most four cells: 9s, 14m, 3h, 12d. A zero
// or future time gives "" or 0s.
func Age(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return face.Span(max(0, now.Sub(t)))
}

// Left is a countdown to t, to the second in its last hour: 9m58s, 59s, 3h.
// A time that has passed gives "now".
func Left(now, t time.Time) string {
	d := t.Sub(now)
	switch {
	case t.IsZero():
		return ""
	case d <= 0:
		return "now"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int((d+time.Second-1)/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d/time.Minute), int(d/time.Second)%60)
	}
	return face.Span(d)
}

// Until is the countdown to the end of what waits, and what happens then.
func Until(now, ends time.Time, how string) string {
	if ends.IsZero() {
		return "no end"
	}
	return Left(now, ends) + ", then: " + how
}

// Millis is Took for a time in milliseconds.
func Millis(ms int64) string { return face.Took(time.Duration(ms) * time.Millisecond) }

// Clock is a time of day, with the date when it is not today.
func Clock(now, t time.Time) string { return clock(now, t, time.TimeOnly, time.DateTime) }

// Precise is a time of day to the millisecond; one of another day has its date
// and no fraction.
func Precise(now, t time.Time) string { return clock(now, t, "15:04:05.000", "01-02 15:04:05") }

// clock writes a time in one way when it is of today, and in another when it is not.
func clock(now, t time.Time, today, otherwise string) string {
	if t.IsZero() {
		return ""
	}
	t = t.In(now.Location())
	if y, m, d := t.Date(); y == now.Year() && m == now.Month() && d == now.Day() {
		return t.Format(today)
	}
	return t.Format(otherwise)
}
