package op

import (
	"cmp"
	"context"
	"fmt"

	"swarmdeck/engine/core"
	"swarmdeck/engine/document"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/task"
)

// invoking are the parameters of operations that run a skill.
type invoking struct {
	skill.Invoke
	waiting
	priority   int
	byPriority *Param
}

// runsSkill makes an operation that runs a skill with a subagent.
func runsSkill(o Op, v *invoking, run func(ctx context.Context, c *Call, v skill.Invoke) (skill.Subagent, error)) *Op {
	v.Params, v.priority = core.Raw(`{}`), 50
	v.byPriority = flag(&v.priority, "priority", "higher runs first").fills(&v.Priority)
	o.Request = &v.Invoke
	o.Params = append(append(o.Params, v.waiting.params("wait until the subagent is over; exit 1 unless it is completed")...),
		flag(&v.Params, "params", "parameters `JSON`: literal, @file, - for stdin").from("json").client("parameters that fit its schema"),
		v.byPriority,
		flag(&v.Timeout, "timeout", "stop the whole run after this `DURATION`").client("seconds that the whole run may take"),
		flag(&v.StartTimeout, "start-within", "time it out unless it starts within this `DURATION`").client("seconds within which it must start, or it is timed out"),
		flag(&v.Session, "session", "run within this session `ID`").from("session"),
		flag(&v.Trace, "trace", "trace `ID`, 32 hex digits (default a new one)"))
	o.Check = func(c *Call) error {
		if v.byPriority.Given {
			v.Priority = &v.priority
		}
		v.Trace, v.Session = cmp.Or(v.Trace, c.Trace), cmp.Or(v.Session, c.Session)
		return v.check(c)
	}
	return define(o, func(ctx context.Context, c *Call) (Invoked, error) {
		made, err := run(ctx, c, v.Invoke)
		if err != nil {
			return Invoked{}, err
		}
		all, err := v.invoked(ctx, c, made)
		return append(all, Invoked{})[0], err
	})
}

// Invoked is a run of a skill: the subagent, the status of its task, and what the
// skill itself came to.
type Invoked struct {
	skill.Subagent
	Kind   string      `json:"kind"`
	Status task.Status `json:"status"`
	Result core.Raw    `json:"result,omitempty"`
}

// invoked are subagents that were given a skill; with --wait, once they are over.
func (w *waiting) invoked(ctx context.Context, c *Call, made ...skill.Subagent) (all []Invoked, err error) {
	within, cancel := limited(ctx, w.limit)
	defer cancel()
	missed := false
	for _, a := range made {
		if w.on {
			if err := c.await(within, func() (still, why string, err error) {
				if a, err = c.Skills.Subagent(ctx, c.By.Tenant, a.AgentID); err != nil || a.State.Final() {
					return "", "", err
				}
				why, err = c.waits(ctx, a.TaskID)
				return fmt.Sprintf("subagent %s is still %s", a.AgentID, a.State), why, err
			}); err != nil {
				return nil, err
			}
			missed = missed || a.State != skill.Completed
		}
		t, err := c.Tasks.Get(ctx, c.By.Tenant, a.TaskID)
		if err != nil {
			return nil, fmt.Errorf("read the task of subagent %s: %w", a.AgentID, err)
		}
		v := Invoked{Subagent: a, Kind: t.Kind, Status: t.Status}
		if a.State == skill.Completed {
			v.Result = a.Results[a.AssignedSkill]
		}
		all = append(all, v)
	}
	if missed {
		return all, &Failed{}
	}
	return all, nil
}

func skillInvoke() *Op {
	var v invoking
	return runsSkill(Op{
		Name: "skill invoke", Short: "Run a skill after what it depends on, with a subagent of its own", Undo: "subagent cancel", Done: "runs the skill:",
		Long: "Run a skill after what it depends on, with a subagent of its own, and print that. Each parameter goes to the steps\n" +
			"that take it; what is left out may come from the results before. With --wait: wait until it is over, print it, and\n" +
			"exit 1 unless it is completed.",
		Example: `skill invoke grasp --params '{"location":"kitchen","area":"kitchen"}' --wait`,
		Tool: Tool{
			Name: "invoke_skill", Names: map[string]string{"trace": "-"}, // it is known
			About: "Run a skill after what it depends on, with a subagent of its own. It is judged at its start and goes on after the call.",
		},
		Params: []*Param{
			{Name: "skill", About: "NAME[@VERSION]", Arg: true, Need: true, Into: &v.Skill, From: "skill", Least: 1, Most: maxRef, Client: ofSkill},
			flag(&v.Name, "name", "`NAME` of the subagent").bounds(1, 100),
			flag(&v.Metadata, "metadata", "of the subagent: `JSON` object of at most 20 keys"),
		},
	}, &v, byCaller(func(c *Call) callerAct[skill.Invoke, skill.Subagent] { return c.Skills.Invoke }))
}

func subagentAssign() *Op {
	var v invoking
	var id string
	return runsSkill(Op{
		Name: "subagent assign", Short: "Give an idle subagent a skill to run", Undo: "subagent cancel", Done: "gave work to",
		Example: `subagent assign a7f3c2e1-… navigate --params '{"location":"kitchen"}' --wait`,
		Params:  []*Param{place(&id, "ID", "subagent:idle"), place(&v.Skill, "SKILL", "skill")},
	}, &v, func(ctx context.Context, c *Call, v skill.Invoke) (skill.Subagent, error) {
		return c.Skills.Assign(ctx, c.By, id, v)
	})
}

func subagentParallel() *Op {
	var w waiting
	var file File
	var all []skill.Invoke
	return define(Op{
		Name: "subagent run-parallel", Short: "Run many skills at once, each with a subagent of its own", Done: "gave work to",
		Long: "Run many skills at once, each with a subagent of its own. FILE (YAML, or JSON by its name; - is YAML on stdin) is a\n" +
			"list of {skill, params, name, metadata}, of which only skill must be there. When one of them can't be run, none is.\n" +
			"With --wait: wait until all are over, print them, and exit 1 unless all are completed.",
		Example: "subagent run-parallel tasks.yaml --wait",
		Params:  append(w.params("wait until all are over"), place(&file, "FILE", "text")),
		Check: func(c *Call) (err error) {
			if all, err = invocations(file); err != nil {
				return err
			}
			return w.check(c)
		},
	}, func(ctx context.Context, c *Call) ([]Invoked, error) {
		made, err := c.Skills.RunParallel(ctx, c.By, all)
		switch {
		case err != nil && len(made) == 0:
			return nil, &Failed{fmt.Errorf("%s: %w", core.Clip(file.Name), err)}
		case err != nil:
			w.on = false
		}
		told, toldErr := w.invoked(ctx, c, made...)
		if err != nil {
			return told, &Failed{err}
		}
		return told, toldErr
	})
}

// invocations reads what a file has run at once.
func invocations(file File) ([]skill.Invoke, error) {
	r := document.NewReader(file.Name)
	root, ok := r.Parse(file.Data, core.MaxInput)
	if !ok {
		return nil, &Failed{r.Err()}
	}
	all := document.Each(r, root, func(v document.Value) (in skill.Invoke) {
		r.Object(v, map[string]func(document.Value){
			"skill":    func(v document.Value) { in.Skill = r.Word(v) },
			"name":     func(v document.Value) { in.Name = r.Text(v) },
			"params":   func(v document.Value) { in.Params = r.Raw(v) },
			"metadata": func(v document.Value) { in.Metadata = r.Raw(v) },
		}, "skill")
		return in
	})
	if err := r.Err(); err != nil {
		return nil, &Failed{err}
	}
	return all, nil
}

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
