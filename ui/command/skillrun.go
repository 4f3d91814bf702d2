package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/task"
	"swarmdeck/ui/term"
)

// invoking are the flags of commands that run a skill.
type invoking struct {
	skill.Invoke
	params   string
	priority int
	w        waiting
}

func (v *invoking) bind(f *pflag.FlagSet) {
	f.StringVar(&v.params, "params", "{}", "parameters `JSON`: literal, @file, - for stdin")
	f.IntVar(&v.priority, "priority", 50, "0-100, higher runs first")
	spanVar(f, &v.Timeout, "timeout", "stop the whole run after this `DURATION`, 1s-24h")
	spanVar(f, &v.StartTimeout, "start-within", "time it out unless it starts within this `DURATION`, 1s-24h")
	f.StringVar(&v.Session, "session", "", "run within this session `ID`")
	f.StringVar(&v.Trace, "trace", "", "trace `ID`, 32 hex digits (default a new one)")
	v.w.bind(f, "wait until the subagent is over; exit 1 unless it is completed")
	source(f, "params", "json")
	source(f, "session", "session")
}

func (v *invoking) check(c *call) (err error) {
	if v.Params, err = c.document("params", v.params); err != nil {
		return err
	}
	if c.flags.Changed("priority") {
		v.Priority = &v.priority
	}
	for _, name := range []string{"timeout", "start-within"} {
		if c.flags.Changed(name) && c.flag(name) == "" {
			return usage(name, "--%s: 0 is not allowed; allowed: 1s-24h", name)
		}
	}
	if v.Trace == "" {
		v.Trace = c.traceparent()
	}
	return v.w.check(c)
}

// invoked is a run of a skill as its command prints it: the subagent, the
// status of its task, and what the skill itself came to.
type invoked struct {
	skill.Subagent
	Kind   string      `json:"kind"`
	Status task.Status `json:"status"`
	Result core.Raw    `json:"result,omitempty"`
}

func (c *call) invoked(made []skill.Subagent) ([]invoked, error) {
	all := make([]invoked, len(made))
	for i, a := range made {
		t, err := c.eng.Tasks.Get(c.ctx, c.by.Tenant, a.TaskID)
		if err != nil {
			return nil, fmt.Errorf("read the task of subagent %s: %w", a.AgentID, err)
		}
		all[i] = invoked{Subagent: a, Kind: t.Kind, Status: t.Status}
		if a.State == skill.Completed {
			all[i].Result = a.Results[a.AssignedSkill]
		}
	}
	return all, nil
}

func invokedColumns(c *call) []column[invoked] {
	var cols []column[invoked]
	for _, col := range subagentColumns(c) {
		text := col.text
		cols = append(cols, column[invoked]{
			title: col.title, right: col.right, wide: col.wide, most: col.most,
			text: func(v invoked) string { return text(v.Subagent) },
		})
	}
	last := &cols[len(cols)-1]
	last.title, last.text = "OUTCOME", func(v invoked) string {
		if v.Error != "" {
			return v.Error
		}
		return string(v.Result)
	}
	return cols
}

// printAgents prints subagents that were given a skill; with --wait, once they
// are over.
func (w *waiting) printAgents(c *call, made ...skill.Subagent) error {
	if !w.on {
		all, err := c.invoked(made)
		if err != nil {
			return err
		}
		return list(c, core.Page[invoked]{Items: all}, invokedColumns(c))
	}
	ctx := c.ctx
	if w.limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.limit)
		defer cancel()
	}
	missed := false
	for i := range made {
		a, err := c.awaitAgent(ctx, made[i].AgentID)
		if errors.Is(err, context.DeadlineExceeded) && c.ctx.Err() == nil {
			return fmt.Errorf("subagent %s is still %s after %s: %w", made[i].AgentID, a.State, w.limit, op.ErrTimeout)
		}
		if err != nil {
			return err
		}
		made[i] = a
		missed = missed || a.State != skill.Completed
	}
	all, err := c.invoked(made)
	if err != nil {
		return err
	}
	if err := list(c, core.Page[invoked]{Items: all}, invokedColumns(c)); err != nil {
		return err
	}
	if missed {
		return &ExitError{Code: ExitFailed}
	}
	return nil
}

// awaitAgent looks at a subagent after each change until it is over. On a
// terminal it says once what it waits for.
func (c *call) awaitAgent(ctx context.Context, id string) (skill.Subagent, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	bell := c.eng.Watch(ctx)
	told := ""
	for {
		a, err := c.eng.Skills.Subagent(context.WithoutCancel(ctx), c.by.Tenant, id)
		if err != nil || a.State.Final() {
			return a, err
		}
		if a.Waiting != "" && told != a.Waiting && c.g.Output != "json" {
			told = a.Waiting
			fmt.Fprintf(c.env.Stderr, "%s\n", term.Clean(fmt.Sprintf("%s waits for approval %s", a.Label(), told)))
		}
		select {
		case <-ctx.Done():
			return a, ctx.Err()
		case _, open := <-bell:
			if !open {
				return a, core.Errorf(core.Unavailable, "the engine has closed")
			}
		}
	}
}

func (t *tree) skillInvoke() *cobra.Command {
	var v invoking
	var metadata string
	return t.command(spec{
		use: "invoke NAME[@VERSION]", short: "Run a skill after what it depends on, with a subagent of its own", effect: Writes, args: []string{"skill"},
		long: "Run a skill after what it depends on, with a subagent of its own, and print that. Each parameter goes to the steps\n" +
			"that take it; what is left out may come from the results before. With --wait: wait until it is over, print it, and\n" +
			"exit 1 unless it is completed.",
		example: `skill invoke grasp --params '{"location":"kitchen","area":"kitchen"}' --wait`,
		flags: func(f *pflag.FlagSet) {
			v.bind(f)
			f.StringVar(&v.Name, "name", "", "`NAME` of the subagent")
			f.StringVar(&metadata, "metadata", "", "of the subagent: `JSON` object of at most 20 keys")
		},
		check: func(c *call, _ []string) (err error) {
			if metadata != "" {
				if v.Metadata, err = c.document("metadata", metadata); err != nil {
					return err
				}
			}
			return v.check(c)
		},
		run: func(c *call, args []string) error {
			v.Skill = args[0]
			made, err := c.eng.Skills.Invoke(c.ctx, c.by, v.Invoke)
			if err != nil {
				return err
			}
			return v.w.printAgents(c, made)
		},
	})
}

func (t *tree) skillExecutions() *cobra.Command {
	var name string
	return lists(t, spec{
		use: "executions", short: "List the runs of skills, newest first", effect: Reads,
		example: "skill executions --skill detect --status failed",
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&name, "skill", "", "only of this skill `NAME`")
			source(f, "skill", "skill")
			source(f, "agent", "subagent")
		},
	}, core.Strings(skill.Statuses()...), executionColumns, func(c *call, f core.Filter) (core.Page[skill.Execution], error) {
		return c.eng.Skills.Executions(c.ctx, c.by.Tenant, name, f)
	})
}

func (t *tree) skillExecution() *cobra.Command {
	return t.command(spec{
		use: "execution ID", short: "Show one run of a skill", effect: Reads, args: []string{"execution"},
		run: shows(func(c *call, id string) (skill.Execution, error) {
			return c.eng.Skills.Execution(c.ctx, c.by.Tenant, id)
		}),
	})
}

func (t *tree) skillFigures() *cobra.Command {
	return t.command(spec{
		use: "figures [NAME]", short: "Tell how the last 200 runs of a skill went, or of every skill", effect: Reads, args: []string{"skill"},
		run: func(c *call, args []string) error {
			names := args
			if len(names) == 0 {
				for _, s := range c.eng.Skills.Catalog(c.by.Tenant) {
					if c.eng.Skills.Newest(s) {
						names = append(names, s.Name)
					}
				}
			}
			all := make([]skill.Figures, len(names))
			for i, name := range names {
				var err error
				name, _, _ = strings.Cut(name, "@")
				if all[i], err = c.eng.Skills.Figures(c.ctx, c.by.Tenant, name); err != nil {
					return err
				}
			}
			type F = skill.Figures
			return list(c, core.Page[F]{Items: all}, []column[F]{
				{title: "SKILL", text: func(f F) string { return f.Skill }},
				{title: "RUNS", right: true, text: func(f F) string { return fmt.Sprint(f.Total) }},
				{title: "P50", right: true, text: func(f F) string { return fmt.Sprintf("%d ms", f.P50MS) }},
				{title: "P95", right: true, text: func(f F) string { return fmt.Sprintf("%d ms", f.P95MS) }},
				{title: "FAILED", right: true, text: func(f F) string { return fmt.Sprintf("%.0f%%", 100*f.FailureRate) }},
			})
		},
	})
}

func executionColumns(c *call) []column[skill.Execution] {
	type E = skill.Execution
	return []column[E]{
		{title: "EXECUTION", text: func(e E) string { return e.ExecutionID }},
		{title: "SKILL", text: func(e E) string { return e.SkillName + "@" + e.SkillVersion }},
		{title: "STATUS", text: func(e E) string {
			if e.Broken() {
				return string(e.Status) + " (interrupted)"
			}
			return string(e.Status)
		}},
		{title: "TOOK", right: true, text: func(e E) string {
			if e.Status == skill.StatusPending {
				return ""
			}
			return (time.Duration(e.DurationMS) * time.Millisecond).String()
		}},
		{title: "RETRIES", right: true, text: func(e E) string { return count(int64(e.RetryCount)) }},
		{title: "AGE", right: true, text: func(e E) string { return c.age(e.StartedAt) }},
		{title: "STEP", wide: true, text: func(e E) string { return e.Step }},
		{title: "AGENT", wide: true, text: func(e E) string { return e.AgentID }},
		{title: "TASK", wide: true, text: func(e E) string { return e.TaskID }},
		{title: "STARTED", wide: true, text: func(e E) string { return stamp(e.StartedAt) }},
		{title: "PARAMETERS", wide: true, most: 48, text: func(e E) string { return string(e.Parameters) }},
		{title: "OUTCOME", most: 48, text: func(e E) string {
			if e.Error != "" {
				return e.Error
			}
			return string(e.Result)
		}},
	}
}
