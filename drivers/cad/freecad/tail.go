package freecad

import (
	"strings"

	"swarmdeck/drivers/pipe"
	"swarmdeck/engine/core"
)

// maxTail is how much of what a process says is kept, in bytes: its end.
const maxTail = 4096

// last is the last line of what a process said, which of a Python error says
// what it was.
func last(said *pipe.Kept) string {
	lines := strings.Split(strings.TrimSpace(pipe.Text(said.Bytes())), "\n")
	return core.OneLine(strings.TrimSpace(lines[len(lines)-1]), 300)
}
