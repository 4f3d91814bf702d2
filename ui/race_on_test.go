//go:build race

package ui

// raceOn says that the race detector slows everything down.
const raceOn = true
