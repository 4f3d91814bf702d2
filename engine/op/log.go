package op

import (
	"context"
	"slices"

	"swarmdeck/engine/core"
	"swarmdeck/engine/task"
)

// reading is how a log is read: its end, the oldest line first, and what comes.
type reading struct {
	lines  int
	follow bool
}

func (r *reading) params() []*Param {
	r.lines = 50
	follow := following(&r.follow)
	follow.Letter = "f"
	return []*Param{follow, flag(&r.lines, "lines", "the last `N` lines; 0 is all").bounds(0, 100_000)}
}

const aboutLog = "Print the last lines of a log, the newest at the end. An entry of several lines is whole. --follow goes on with what comes:\n" +
	"of a task until it is over, of an agent until it is interrupted."

func logs() []*Op {
	var id string
	var r reading
	return []*Op{stream(Op{
		Name: "log", Short: "Print what an agent or a task said and wrote", Long: aboutLog, Example: "log ada -f\nlog 0042 --lines 200", ForAgents: true,
		Params: append(r.params(), place(&id, "ID", "any")), Check: activeIf(&r.follow),
	}, func(ctx context.Context, c *Call, emit func(...task.LogLine) error) error {
		noun, v, err := c.find(ctx, id, false)
		switch v := v.(type) {
		case ShownAgent:
			return r.agent(ctx, c, v.Name, emit)
		case ShownTask:
			return r.task(ctx, c, v.TaskID, emit)
		}
		if err == nil {
			err = usage("id", "log: a %s has none; agents and tasks have one", noun)
		}
		return err
	})}
}

func taskLog() *Op {
	var id string
	var r reading
	return stream(Op{
		Name: "task log", Short: "Print a task's log, the newest line last", Long: aboutLog, Example: "task log tk_… --follow", ForAgents: true,
		Params: append(r.params(), place(&id, "ID", "task")), Check: activeIf(&r.follow),
	}, func(ctx context.Context, c *Call, emit func(...task.LogLine) error) error {
		return r.task(ctx, c, id, emit)
	})
}

func (r *reading) task(ctx context.Context, c *Call, id string, emit func(...task.LogLine) error) error {
	t, err := c.Tasks.Get(ctx, c.By.Tenant, id)
	if err != nil {
		return err
	}
	return c.log(ctx, t.TaskID, 0, r.lines, func() (over bool, err error) {
		if !r.follow {
			return true, nil
		}
		t, err := c.Tasks.Get(ctx, c.By.Tenant, id)
		return t.Status.Terminal(), err
	}, emit)
}

func (r *reading) agent(ctx context.Context, c *Call, name string, emit func(...task.LogLine) error) error {
	a, err := c.Fleet.Agent(ctx, c.By.Tenant, name)
	if err != nil {
		return err
	}
	return c.log(ctx, "agent:"+a.Name, a.LogFrom, r.lines, func() (bool, error) {
		_, err := c.Fleet.Agent(ctx, c.By.Tenant, a.Name) // it may be deleted meanwhile
		return !r.follow, err
	}, emit)
}

func agentLog() *Op {
	var name string
	var r reading
	o := list(Op{
		Name: "agent log", Short: "Print an agent's conversation log, the newest line last", Example: "agent log lister --follow",
		Long:      aboutLog + "\n--page and --page-size give pages instead, the newest line first.",
		ForAgents: true, Streams: true, Statuses: []string{"DEBUG", "INFO", "WARN", "ERROR"},
		Tool: Tool{
			Name: "show_agent_log", By: []string{"status", "since", "until", "match"}, Names: map[string]string{"follow": "-", "lines": "-"}, Size: 1,
			About: "Show an agent's conversation log, newest first; one entry unless page_size says more.",
		},
		Params: append(r.params(), place(&name, "NAME", "agent")),
		Check:  activeIf(&r.follow),
	}, func(ctx context.Context, c *Call, f core.Filter) (core.Page[task.LogLine], error) {
		return c.Fleet.Log(ctx, c.By.Tenant, name, f)
	})
	paged := o.run
	o.run = func(ctx context.Context, c *Call) (any, error) {
		emit := emitting[task.LogLine](c)
		switch f := *o.Filter; {
		case r.follow || !f.Narrows() && f.Page == 0 && f.Size == 0:
			return nil, r.agent(ctx, c, name, emit)
		case f.Page == 0 && f.Size == 0: // the last that the filter lets through
			o.Filter.Size = min(max(1, r.lines), core.MaxPageSize)
			out, err := paged(ctx, c)
			if page, is := out.(core.Page[task.LogLine]); is {
				slices.Reverse(page.Items)
				return nil, emit(page.Items...)
			}
			return nil, err
		}
		return paged(ctx, c)
	}
	return o
}

// logChunk is how many log lines are read at a time.
const logChunk = 500

// log emits the lines of a stream after one, the last of them with tail, and what comes,
// until over says so.
func (c *Call) log(ctx context.Context, stream string, after uint64, tail int, over func() (bool, error), emit func(...task.LogLine) error) error {
	from := after + 1
	if tail > 0 {
		_, last, err := c.Tasks.Log(ctx, c.By.Tenant, stream, 1, 0)
		if err != nil {
			return err
		}
		if last > uint64(tail) {
			from = max(from, last-uint64(tail)+1)
		}
	}
	return c.follow(ctx, func() (bool, error) {
		ended, err := over() // asked before reading: lines written until then are not missed
		for more := true; more && err == nil; {
			var lines []task.LogLine
			if lines, _, err = c.Tasks.Log(ctx, c.By.Tenant, stream, from, logChunk); err != nil {
				break
			}
			if err = emit(lines...); len(lines) > 0 {
				from = lines[len(lines)-1].Seq + 1
			}
			more = len(lines) == logChunk
		}
		return ended, err
	})
}

func tells() []*Op { return []*Op{agentTell("tell")} }

func shows() []*Op {
	return []*Op{show(Op{
		Name: "show", Short: "Show what something is, what it waits for and which command is next", ForAgents: true,
		Long: "Show what something is, what it waits for and which command is next. -o wide and -o json have all that is kept of it.\n" +
			"An id may be cut short to an ending or a beginning that no other has.",
		Example: "show ada\nshow 0042",
	}, arg("ID", "any"), func(ctx context.Context, c *Call, id string) (any, error) {
		_, v, err := c.find(ctx, id, true)
		return v, err
	})}
}
