package pane

import (
	"fmt"
	"time"

	"swarmdeck/engine/face"
)

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
