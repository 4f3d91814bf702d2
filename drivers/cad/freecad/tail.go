package freecad

import (
	"strings"

	"swarmdeck/drivers/pipe"
)

// maxTail is how much of what a process says is kept, in bytes: its end.
const maxTail = 4096

// last is the last line of what a process said, which of a Python error says
// what it was.
func last(said *pipe.Kept) string {
	lines := strings.Split(strings.TrimSpace(pipe.Text(said.Bytes())), "\n")
	return clip(strings.TrimSpace(lines[len(lines)-1]), 300)
}

// clip bounds a text and keeps control characters out of it.
func clip(text string, most int) string {
	return pipe.Clip(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text), most)
}
