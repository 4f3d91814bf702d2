//go:build race

package celltest

// Race says that this program has the race detector, which slows everything down.
const Race = true
