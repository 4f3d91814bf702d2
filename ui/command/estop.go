package command

import (
	"fmt"
	"strings"

	"swarmdeck/engine/estop"

	"github.com/spf13/cobra"
)

func (t *tree) estop() *cobra.Command {
	reasoned := func(c *call, _ []string) error {
		if strings.TrimSpace(c.reason()) == "" {
			return usage("reason", "%s: --reason is missing", commandPath(c.cmd))
		}
		return nil
	}
	return t.group("estop", "Emergency stop of a tenant",
		// Stopping is reversible and must be one step: no confirmation.
		t.command(spec{
			use: "on", short: "Freeze every agent and claim at once", effect: Writes, flags: withReason, check: reasoned,
			example: "estop on --reason 'it deletes files'",
			run: func(c *call, _ []string) error {
				state, err := c.eng.Swarm.EStops.Press(c.ctx, c.by, c.reason())
				return c.showEStop(state, err)
			},
		}),
		t.command(spec{
			use: "off", short: "Thaw what the emergency stop froze", effect: Writes, confirm: ConfirmAsk, flags: withReason, check: reasoned,
			run: func(c *call, _ []string) error {
				state, err := c.eng.Swarm.EStops.Thaw(c.ctx, c.by, c.reason())
				return c.showEStop(state, err)
			},
		}),
		t.command(spec{
			use: "show", short: "Show the emergency stop and who has not acknowledged", effect: Reads,
			run: func(c *call, _ []string) error {
				return c.showEStop(c.eng.Swarm.EStops.State(c.by.Tenant), nil)
			},
		}),
	)
}

func (c *call) showEStop(e estop.State, err error) error {
	if err != nil {
		return err
	}
	if !e.On {
		return c.say(e, "emergency stop: off")
	}
	waiting := "all have acknowledged"
	if len(e.Waiting) > 0 {
		waiting = fmt.Sprintf("not acknowledged yet: %s", strings.Join(e.Waiting, " "))
	}
	return c.say(e, "emergency stop: ON since %s by %s: %s; %d frozen; %s", stamp(e.At), e.By, e.Reason, e.Frozen, waiting)
}
