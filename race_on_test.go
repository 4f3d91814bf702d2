//go:build race

package main

// raceOn says that the race detector slows everything down.
const raceOn = true
