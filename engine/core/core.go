// Package core holds what every other engine package shares: the clock, ids,
// errors, strict and canonical JSON, the caller of an operation, list filters
// and the change record. It imports none of swarmdeck's other packages.
package core

import "time"

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
