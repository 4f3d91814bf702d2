package op

import (
	"context"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/reach"
)

func resources() []*Op {
	type V = resource.View
	id := arg("ID", "resource")
	return []*Op{
		list(Op{
			Name: "dag resource list", Short: "List what is looked after",
			Long: "List what is looked after: what was attached to an agent, and the directory that each agent works in from its\n" +
				"first run on. --kind is a kind of resource.",
		}, byTenant(func(c *Call) tenantRead[core.Filter, core.Page[V]] { return c.Resources.List })),
		show(Op{Name: "dag resource show", Short: "Show a resource, what can be done with it and who has it"}, id,
			byTenant(func(c *Call) tenantRead[string, V] { return c.Resources.Show })),
		resourceAttach(),
		resourceDetach(),
		change(Op{Name: "dag resource probe", Short: "Look whether a resource is there, and record it", Done: "looked at"}, id,
			func(ctx context.Context, c *Call, id string) (V, error) { return c.Resources.Probe(ctx, c.By, id) }),
		change(Op{Name: "dag resource snapshot", Short: "Keep the state that a resource has now", Check: activate, Done: "kept"}, id,
			byCaller(func(c *Call) callerAct[string, resource.Shown] { return c.Resources.Snapshot })),
		resourceSnapshots(),
		resourceRestore(),
		dagFork(),
	}
}

// activate is the Check of an operation that needs the engine to do work.
func activate(c *Call) error { return c.Activate() }

func resourceAttach() *Op {
	var a resource.Attachment
	mode := "rw"
	return define(Op{
		Name: "dag resource attach", Short: "Look after something that an agent works on", Undo: "dag resource detach", Done: "attached",
		Long: "Look after something that an agent works on. TARGET is\n" +
			"PATH                   a file or directory, or a git worktree\n" +
			"files:PATH, git:PATH   the same, kept as files, or by git\n" +
			"process:PID            a process: it can be held, not restored\n" +
			"docker:volume/NAME     a volume, container/NAME or image/NAME of docker\n" +
			"Of files that the agent may write the state is kept before each of its tool calls.",
		Example: "dag resource attach ada /srv/data --mode ro\ndag resource attach ada process:4711",
		Params: []*Param{
			place(&a.AgentID, "AGENT", "agent"), place(&a.Target, "TARGET", "file"),
			flag(&mode, "mode", "how the agent has it").enum("ro", "rw"),
			flag(&a.Mount, "mount", "`PATH` at which the agent sees it").names(reach.Inside),
		},
	}, func(ctx context.Context, c *Call) (resource.View, error) {
		a.Target, a.Mode = c.target(a.Target), dag.Mode(mode)
		return c.Resources.Attach(ctx, c.By, a)
	})
}

// target makes a path in a target absolute: the engine may run elsewhere.
func (c *Call) target(text string) string {
	word, rest, ok := strings.Cut(text, ":")
	switch {
	case ok && (word == "files" || word == "git"):
		return word + ":" + c.path(rest)
	case ok && !strings.Contains(word, "/"):
		return text
	}
	return c.path(text)
}

func resourceDetach() *Op {
	var agent, id string
	return define(Op{
		Name: "dag resource detach", Short: "Record that an agent has a resource no longer", Undo: "dag resource attach", Done: "detached",
		Params: []*Param{place(&agent, "AGENT", "agent"), place(&id, "ID", "resource")},
	}, func(ctx context.Context, c *Call) (resource.View, error) {
		return c.Resources.Detach(ctx, c.By, agent, id)
	})
}

func resourceSnapshots() *Op {
	var id string
	return list(Op{
		Name: "dag resource snapshots", Short: "List the states of a resource that are kept, newest first",
		Params: []*Param{place(&id, "ID", "resource")},
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[resource.Shown], error) {
		return c.Resources.Snapshots(ctx, c.By.Tenant, id, f)
	})
}

func resourceRestore() *Op {
	var id, to string
	var yes bool
	return define(Op{
		Name: "dag resource restore", Short: "Make the state of a snapshot again", Effect: Destroys, Confirm: ConfirmAsk, Done: "restored",
		Long: "Make the state of a snapshot again: with --to as a new resource, else in the place of the resource itself, whose\n" +
			"present state goes. What agents work in meanwhile is not replaced.",
		Example: "dag resource restore snap-12ab --to /srv/again\ndag resource restore snap-12ab --yes",
		Params: []*Param{
			place(&id, "SNAPSHOT", "snapshot"),
			flag(&to, "to", "make a new `PATH`, volume or image").from("file"),
			flag(&yes, "yes", "the present state may go"),
		},
		Check: func(c *Call) error {
			if to == "" && !yes {
				return usage("yes", "dag resource restore: the present state is replaced; say --yes to restore %q in its place, or --to PATH", core.Clip(id))
			}
			if strings.Contains(to, "/") {
				to = c.path(to)
			}
			return c.Activate()
		},
	}, func(ctx context.Context, c *Call) (resource.View, error) {
		return c.Resources.Restore(ctx, c.By, id, to)
	})
}
