package socket

import (
	"os"
	"strings"

	"swarmdeck/engine/core"
)

// seatVariable hands a seat to the engine that carries out a line for this process.
const seatVariable = "SWARMDECK_SEAT"

// maxSeat bounds a seat, in bytes.
const maxSeat = 64

// Seat is where whoever started this process sits: its terminal, and the machine that
// this one was entered from; "" where there is no terminal.
func Seat() string {
	at, err := os.Readlink("/proc/self/fd/0")
	if err != nil || !strings.HasPrefix(at, "/dev/pts/") && !strings.HasPrefix(at, "/dev/tty") {
		return ""
	}
	if from, _, ok := strings.Cut(os.Getenv("SSH_CONNECTION"), " "); ok {
		at += " from " + from
	}
	return seat(at)
}

// seat is what a process of this user says of its seat, fit for a record.
func seat(said string) string {
	if !core.Printable(said) {
		return ""
	}
	return core.ClipTo(said, maxSeat)
}
