package op

import (
	"cmp"
	"context"

	"swarmdeck/engine/core"
	"swarmdeck/engine/skill"
)

func subagents() []*Op {
	type A = skill.Subagent
	return []*Op{
		subagentSpawn(),
		subagentList(),
		subagentAssign(),
		subagentParallel(),
		show(Op{Name: "subagent show", Short: "Show a subagent with its results"}, arg("ID", "subagent"),
			byTenant(func(c *Call) tenantRead[string, A] { return c.Skills.Subagent })),
		change(Op{Name: "subagent pause", Short: "Make a subagent stand still, at once or before its next step", Undo: "subagent resume", Done: "asked to pause:"},
			arg("ID", "subagent:working"), func(ctx context.Context, c *Call, id string) (A, error) { return c.Skills.Pause(ctx, c.By, id) }),
		change(Op{Name: "subagent resume", Short: "Let a paused subagent go on", Undo: "subagent pause", Done: "resumed"},
			arg("ID", "subagent:paused"), func(ctx context.Context, c *Call, id string) (A, error) { return c.Skills.Resume(ctx, c.By, id) }),
		changeWhy(Op{Name: "subagent cancel", Short: "Interrupt a subagent; it fails with cancelled", Effect: Destroys, Confirm: ConfirmAsk, Done: "cancelled"},
			arg("ID", "subagent:idle|working|waiting|stopping|paused|interrupted"), withReason(func(c *Call) callerWhy[A] { return c.Skills.Cancel })),
		change(Op{
			Name: "subagent stop", Short: "End a subagent when its step has; it fails with stopped unless that was the last",
			Effect: Destroys, Confirm: ConfirmAsk, Done: "stopped",
		}, arg("ID", "subagent:idle|working|waiting|stopping|paused|interrupted"), func(ctx context.Context, c *Call, id string) (A, error) { return c.Skills.Stop(ctx, c.By, id) }),
	}
}

func subagentSpawn() *Op {
	var w skill.Spawn
	return define(Op{
		Name: "subagent spawn", Short: "Make a subagent; it is idle until it is assigned a skill", Undo: "subagent cancel", Done: "spawned",
		Example: `subagent spawn --name Navigator-1 --metadata '{"priority":"high"}'`,
		Params: []*Param{
			flag(&w.Name, "name", "`NAME` for people, at most 100 characters"),
			flag(&w.Metadata, "metadata", "`JSON` object of at most 20 keys"),
		},
	}, func(ctx context.Context, c *Call) (skill.Subagent, error) { return c.Skills.Spawn(ctx, c.By, w) })
}

func subagentList() *Op {
	var state string
	states := core.Strings(skill.States()...)
	var o *Op
	o = list(Op{
		Name: "subagent list", Short: "List the subagents, newest first", Example: "subagent list --state running",
		Statuses: states, Agents: "subagent",
		Params: []*Param{flag(&state, "state", "only in this `STATE`: "+words("|", states...)).enum(states...)},
		Check: func(*Call) error {
			if status := o.Filter.Status; state != "" && status != "" && status != state {
				return usage("state", "--state and --status are the same; give one of them")
			}
			return nil
		},
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[skill.Subagent], error) {
		f.Status = cmp.Or(state, f.Status)
		return c.Skills.Subagents(ctx, c.By.Tenant, f)
	})
	return o
}
