package op

import (
	"context"

	"swarmdeck/engine/estop"
)

func estops() []*Op {
	press := func(o Op, do func(ctx context.Context, c *Call, reason string) (estop.State, error)) *Op {
		var reason string
		o.Params = []*Param{why(&reason)}
		o.Params[0].Need = true
		return define(o, func(ctx context.Context, c *Call) (estop.State, error) { return do(ctx, c, reason) })
	}
	return []*Op{
		// Stopping is reversible and must be one step: no confirmation.
		press(Op{
			Name: "estop on", Short: "Freeze every agent and claim at once", Example: "estop on --reason 'it deletes files'",
			Undo: "estop off", Done: "pressed",
		}, byCaller(func(c *Call) callerAct[string, estop.State] { return c.Swarm.EStops.Press })),
		press(Op{Name: "estop off", Short: "Thaw what the emergency stop froze", Confirm: ConfirmAsk, Done: "released"},
			byCaller(func(c *Call) callerAct[string, estop.State] { return c.Swarm.EStops.Thaw })),
		define(Op{Name: "estop show", Short: "Show the emergency stop and who has not acknowledged", Effect: Reads},
			func(_ context.Context, c *Call) (estop.State, error) { return c.Swarm.EStops.State(c.By.Tenant), nil }),
	}
}
