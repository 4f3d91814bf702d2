package op

import (
	"context"

	"swarmdeck/engine/fleet"
)

func agentMode() *Op {
	return agentChoose(fleet.SetMode, "Set the mode of an agent's own permissions",
		"Set the mode of an agent's own permissions, one of those that it offers (agent show): at once, also while it works, and in\n"+
			"all of its conversations to come. What it may do without asking depends on it. A change that nobody asked for is still\n"+
			"reported, and undone with its next task.", "agent mode ada default")
}

func agentModel() *Op {
	return agentChoose(fleet.SetModel, "Set the model that an agent uses",
		"Set the model that an agent uses, one of those that it offers (agent show): at once, and in all of its conversations to come.",
		"agent model ada small-2")
}

func agentChoose(what fleet.Setting, short, long, example string) *Op {
	var name, value string
	return define(Op{
		Name: "agent " + string(what), Short: short, Done: "set the " + string(what) + " of", Long: long, Example: example,
		Params: []*Param{place(&name, "NAME", "agent"), place(&value, "VALUE", "agent-"+string(what)).bounds(1, 128)},
	}, func(ctx context.Context, c *Call) (fleet.Agent, error) {
		return c.Fleet.Choose(ctx, c.By, name, what, value)
	})
}
