package wire

import (
	"io"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"
)

// Config is that of the multiplexed connection, at both ends: without a log, and without
// keep-alives, as there are beats.
func Config() *yamux.Config {
	c := yamux.DefaultConfig()
	c.EnableKeepAlive = false
	c.LogOutput = io.Discard
	return c
}

// SinceBoot is a clock that goes on while the machine sleeps.
func SinceBoot() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &t)
	return time.Duration(t.Nano())
}
