// Package core holds what every other engine package shares: the clock, ids,
// errors, strict and canonical JSON, the caller of an operation, list filters
// and the change record. It imports none of swarmdeck's other packages.
package core

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// Clock tells the time. Tests inject their own; inside testing/synctest the
// system clock already is fake.
type Clock interface{ Now() time.Time }

// SystemClock is the real clock, in UTC, cut to microseconds so that a time
// read back from JSON equals the one written.
type SystemClock struct{}

func (SystemClock) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Change says that one record of a tenant changed in a commit. Record is the
// immutable new value (nil when it was removed); watchers must not modify it.
type Change struct {
	Tenant string
	Kind   string // "task", "session", "agent", "approval", "decision", "budget", "estop", "tenant", "log", "message"
	ID     string
}

// ParseSpan reads a duration as Go writes it (30s, 15m, 2h), or in days (7d).
func ParseSpan(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n <= 36500 {
			return time.Duration(n * float64(24*time.Hour)), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, errors.New("allowed: a duration like 30s, 15m, 2h or 7d")
	}
	return d, nil
}

// ParsePast reads a time as RFC 3339 has it, or a duration before now.
func ParsePast(now time.Time, text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at.UTC(), nil
	}
	d, err := ParseSpan(text)
	if err != nil {
		return time.Time{}, errors.New("allowed: a time like 2026-01-02T15:04:05Z or a duration like 15m")
	}
	return now.Add(-d), nil
}

// Seconds rounds up, so that a limit below a second is still a limit.
func Seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

const (
	// gcPercent has garbage collected when the heap is four times what lives.
	gcPercent = 300
	// heapFloor is never touched, so it costs no memory, but it counts as
	// living: small heaps have 24 MB more for garbage, large ones hardly more.
	heapFloor = 8 << 20
)

// RelaxGC collects garbage less often than is Go's custom, the first time at
// 12 MB, which a short command does not reach. GOGC in the environment wins.
func RelaxGC() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
}

// HeapFloor has garbage collected less often still where an engine is busy:
// what lives is a few MB, and collecting takes a quarter of the processor time
// otherwise. It holds until keep is called. Making it may collect once, which
// costs a millisecond or two.
func HeapFloor() (keep func()) {
	floor := make([]byte, heapFloor)
	return func() { runtime.KeepAlive(floor) }
}
