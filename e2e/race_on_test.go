//go:build race

package e2e

// raceOn says that the race detector slows everything down.
const raceOn = true
