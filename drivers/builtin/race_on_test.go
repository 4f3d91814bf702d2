//go:build race

package builtin_test

// With the race detector a process can't be held to maxData, which single
// operations of these tests would exceed by far.
const unbounded = true
