package pane

import (
	"fmt"
	"time"
)

// Age is how long ago t was, in at most four cells: 9s, 14m, 3h, 12d. A zero
// or future time gives "" or 0s.
func Age(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Span(now.Sub(t))
}

// Span is a length of time in its largest unit.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d/time.Second))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d/time.Minute))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d/time.Hour))
	case d < 1000*24*time.Hour:
		return fmt.Sprintf("%dd", int(d/(24*time.Hour)))
	}
	return fmt.Sprintf("%dy", int(d/(365*24*time.Hour)))
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
	return Span(d)
}

// Took is how long something ran, in at most six cells: 850ms, 1.2s, 3m05s.
func Took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", max(d, 0)/time.Millisecond)
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < 100*time.Minute:
		return fmt.Sprintf("%dm%02ds", int(d/time.Minute), int(d/time.Second)%60)
	}
	return Span(d)
}

// Millis is Took for a time in milliseconds.
func Millis(ms int64) string { return Took(time.Duration(ms) * time.Millisecond) }

// Clock is a time of day, with the date when it is not today.
func Clock(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	t = t.In(now.Location())
	if y, m, d := t.Date(); y == now.Year() && m == now.Month() && d == now.Day() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

// Precise is a time of day to the millisecond; one of another day has its date
// and no fraction.
func Precise(now, t time.Time) string {
	if t.IsZero() {
		return ""
	}
	t = t.In(now.Location())
	if y, m, d := t.Date(); y == now.Year() && m == now.Month() && d == now.Day() {
		return t.Format("15:04:05.000")
	}
	return t.Format("01-02 15:04:05")
}
