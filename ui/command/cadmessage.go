package command

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
)

func (t *tree) cadMessage() *cobra.Command {
	var m cad.SendMessage
	return t.command(spec{
		use: "message FROM TO TYPE JSON", short: "Send a message from one CAD agent to another, or to all", effect: Writes,
		args: []string{"cadagent", "cadreceiver", "enum:request,response,broadcast,error", "json"},
		long: "Send a message between CAD agents. TO is an agent, or broadcast. JSON is an object, @file, or - for stdin; it must have\n" +
			"  request    request_type: validate_component, provide_dimensions, check_compatibility, request_rework, query_status\n" +
			"  response   request_id, and status: success, failure, partial, needs_clarification\n" +
			"  broadcast  announcement: workspace_merge_complete, component_ready, task_completed, error_occurred, status_update\n" +
			"  error      error_code, such as ROLE_VIOLATION, and error_message\n" +
			"and may have more.",
		example: `cad message reviewer designer request '{"request_type":"request_rework","component_id":"solid_1"}'`,
		flags: func(f *pflag.FlagSet) {
			f.StringVar(&m.Trace, "trace", "", "trace `ID`, 32 hex digits (default a new one)")
			f.StringVar(&m.Task, "task", "", "task `ID` that it belongs to")
			source(f, "task", "task")
		},
		check: func(c *call, args []string) (err error) {
			m.From, m.To, m.Type = args[0], args[1], cad.MessageType(args[2])
			m.Content, err = c.document("content", args[3])
			return err
		},
		run: func(c *call, _ []string) error {
			sent, err := c.eng.CAD.SendMessage(c.ctx, c.by, m)
			if err != nil {
				return err
			}
			return record(c, sent, cadMessageColumns(c))
		},
	})
}

func (t *tree) cadMessages() *cobra.Command {
	var mark bool
	var l filter
	var f core.Filter
	return t.command(spec{
		use: "messages ID", short: "List what a CAD agent was sent, newest first; --kind is a type", effect: Reads, args: []string{"cadagent"},
		long: "List what a CAD agent was sent, newest first; --agent is a sender, --kind a type. With --mark-read: those that it has\n" +
			"not read, oldest first, which are read from then on.",
		example: "cad messages designer --mark-read\ncad messages designer --status unread",
		flags: func(set *pflag.FlagSet) {
			l.bind(set, "read", "unread")
			set.BoolVar(&mark, "mark-read", false, "take what is unread, and mark it read")
		},
		check: func(c *call, _ []string) (err error) {
			if f, err = l.read(c, "read", "unread"); err != nil || !mark {
				return err
			}
			if g := f; g.Page > 1 || (core.Filter{Page: g.Page, Size: g.Size}) != g {
				return usage("mark_read", "--mark-read takes the oldest ones: of the filters only --page-size goes with it")
			}
			return c.permit(commandPath(c.cmd)+" --mark-read", spec{effect: Writes, role: Operator})
		},
		run: func(c *call, args []string) error {
			if !mark {
				found, err := c.eng.CAD.Messages(c.ctx, c.by.Tenant, args[0], f)
				if err != nil {
					return err
				}
				return list(c, found, cadMessageColumns(c))
			}
			if _, err := c.open(Need{Data: c.g.Data, Active: c.active}); err != nil {
				return err
			}
			if f.Size == 0 {
				f.Size = core.DefaultPageSize
			}
			read, err := c.eng.CAD.ReadMessages(c.ctx, c.by, args[0], f.Size)
			if err != nil {
				return err
			}
			return list(c, core.Page[cad.AgentMessage]{Items: read}, cadMessageColumns(c))
		},
	})
}

func cadMessageColumns(c *call) []column[cad.AgentMessage] {
	type M = cad.AgentMessage
	return []column[M]{
		{title: "MESSAGE", text: func(m M) string { return m.MessageID }},
		{title: "FROM", text: func(m M) string { return m.FromAgentID }},
		{title: "TO", text: func(m M) string { return m.ToAgentID }},
		{title: "TYPE", text: func(m M) string { return string(m.MessageType) }},
		{title: "READ", text: func(m M) string {
			if m.Read {
				return "read"
			}
			return "unread"
		}},
		{title: "AGE", right: true, text: func(m M) string { return c.age(m.Timestamp.Time()) }},
		{title: "TASK", wide: true, text: func(m M) string { return m.TaskID }},
		{title: "TRACE", wide: true, text: func(m M) string { return m.TraceID }},
		{title: "CONTENT", most: 60, text: func(m M) string { return string(m.Content) }},
	}
}
