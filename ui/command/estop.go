package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/swarm"
)

func (t *tree) estop() *cobra.Command {
	var reason string
	reasoned := func(f *pflag.FlagSet) { f.StringVar(&reason, "reason", "", "why, for the record") }
	set := func(on bool) func(*call, []string) error {
		return func(c *call, _ []string) error {
			if strings.TrimSpace(reason) == "" {
				return usage("reason", "%s: --reason is missing", commandPath(c.cmd))
			}
			eng, by, err := c.scope()
			if err != nil {
				return err
			}
			do := eng.Swarm.Thaw
			if on {
				do = eng.Swarm.StopAll
			}
			state, err := do(c.ctx, by, reason)
			if err != nil {
				return err
			}
			return c.showEStop(state)
		}
	}
	return t.group("estop", "Emergency stop of a tenant",
		// Stopping is reversible and must be one step: no confirmation.
		t.command(spec{use: "on", short: "Freeze every agent and claim at once", effect: Writes, flags: reasoned, run: set(true)}),
		t.command(spec{use: "off", short: "Thaw what the emergency stop froze", effect: Writes, confirm: ConfirmAsk, flags: reasoned, run: set(false)}),
		t.command(spec{use: "show", short: "Show the emergency stop and who has not acknowledged", effect: Reads,
			run: func(c *call, _ []string) error {
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				state, err := eng.Swarm.EStop(c.ctx, by.Tenant)
				if err != nil {
					return err
				}
				return c.showEStop(state)
			}}),
	)
}

func (c *call) showEStop(e swarm.EStop) error {
	if !e.On {
		return c.say(e, "emergency stop: off")
	}
	waiting := "all have acknowledged"
	if len(e.Waiting) > 0 {
		waiting = fmt.Sprintf("not acknowledged yet: %s", strings.Join(e.Waiting, " "))
	}
	return c.say(e, "emergency stop: ON since %s by %s: %s; %d frozen; %s", stamp(e.At), e.By, e.Reason, e.Frozen, waiting)
}
