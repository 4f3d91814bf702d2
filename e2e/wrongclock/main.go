//go:build linux

// Wrongclock is the program by a clock that is off by as many nanoseconds as the file
// says that the environment names, at each moment anew.
package main

import (
	"os"
	"strconv"
	"strings"
	"time"

	"swarmdeck/app"
	"swarmdeck/engine/core"
)

type clock struct{ file *os.File }

func (c clock) Now() time.Time {
	var said [32]byte
	n, _ := c.file.ReadAt(said[:], 0)
	off, _ := strconv.ParseInt(strings.TrimSpace(string(said[:n])), 10, 64)
	return core.SystemClock{}.Now().Add(time.Duration(off))
}

func main() {
	name := os.Getenv("SWARMDECK_TEST_CLOCK")
	if name == "" { // a process of the engine
		os.Exit(app.Run(os.Args))
	}
	file, err := os.Open(name)
	if err != nil {
		os.Exit(2)
	}
	os.Exit(app.RunBy(clock{file}, os.Args))
}
