package command

import (
	"fmt"
	"strings"

	"swarmdeck/engine/estop"
	"swarmdeck/engine/face"
)

func showEStop(c *call, e estop.State) error {
	if !e.On {
		return c.say(e, "emergency stop: off")
	}
	waiting := "all have acknowledged"
	if len(e.Waiting) > 0 {
		waiting = fmt.Sprintf("not acknowledged yet: %s", strings.Join(e.Waiting, " "))
	}
	return c.say(e, "emergency stop: ON since %s by %s: %s; %d frozen; %s", face.Stamp(e.At), e.By, e.Reason, e.Frozen, waiting)
}
