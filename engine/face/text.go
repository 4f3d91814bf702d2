package face

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"swarmdeck/engine/core"
)

// Age is how long ago t was, "" for no time.
func (at At) Age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Span(max(0, at.Now.Sub(t)))
}

// Left is how long it is until t, "" for no time.
func (at At) Left(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Span(max(0, t.Sub(at.Now)))
}

// Near is a path as seen from the directory, if it is below that.
func (at At) Near(path string) string {
	dir := at.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return path
		}
	}
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// Span is a length of time in its largest unit, in at most four cells: 9s, 14m, 3h,
// 12d.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Span(-d)
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

// Stamp is a time in UTC as RFC 3339 writes it, "" for none.
func Stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// Assigned writes names with their values, in the order of the names.
func Assigned(values map[string]string) string {
	all := core.Map(slices.Sorted(maps.Keys(values)), func(name string) string { return name + "=" + values[name] })
	return strings.Join(all, " ")
}

// Size is a number of bytes.
func Size(n int64) string {
	for i, name := range []string{"GiB", "MiB", "KiB"} {
		if unit := int64(1) << (30 - 10*i); n >= unit {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit), name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

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
