package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/swarm"
)

func (t *tree) results() *cobra.Command {
	var l filter
	ended := taskStates()[2:]
	return t.group("result", "What came of tasks",
		t.command(spec{
			use: "show TASK", short: "Show a task's result", effect: Reads, args: []string{"task"},
			run: func(c *call, args []string) error {
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				found, err := eng.Swarm.Result(c.ctx, by.Tenant, args[0])
				if err != nil {
					return err
				}
				return c.show(found)
			},
		}),
		t.command(spec{
			use: "list", short: "List the results, newest first", effect: Reads,
			flags: func(f *pflag.FlagSet) { l.bind(f, ended...) },
			run: func(c *call, _ []string) error {
				f, err := l.read(c, ended...)
				if err != nil {
					return err
				}
				eng, by, err := c.scope()
				if err != nil {
					return err
				}
				page, err := eng.Swarm.Results(c.ctx, by.Tenant, f)
				if err != nil {
					return err
				}
				return list(c, page, c.resultColumns())
			},
		}),
	)
}

func (c *call) resultColumns() []column[swarm.Result] {
	type R = swarm.Result
	return []column[R]{
		{title: "TASK", text: func(r R) string { return r.TaskID }},
		{title: "STATUS", text: func(r R) string { return string(r.Status) }},
		{title: "CONF", right: true, text: func(r R) string { return confidence(r.Confidence) }},
		{title: "AGE", right: true, text: func(r R) string { return c.age(r.CompletedAt) }},
		{title: "COMPLETED", wide: true, text: func(r R) string { return stamp(r.CompletedAt) }},
		{title: "BY", wide: true, text: func(r R) string { return r.ProducedBy }},
		{title: "TRACE", wide: true, text: func(r R) string { return r.TraceID }},
		{title: "DENIALS", wide: true, right: true, text: func(r R) string { return fmt.Sprint(len(r.Denials)) }},
		{title: "OUTCOME", most: 60, text: func(r R) string {
			if r.Error != nil {
				return r.Error.Code + ": " + r.Error.Message
			}
			return string(r.Output)
		}},
	}
}

func confidence(c *float64) string {
	if c == nil {
		return ""
	}
	return fmt.Sprintf("%.2f", *c)
}
