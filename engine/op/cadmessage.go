package op

import (
	"cmp"
	"context"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
)

func cadMessage() *Op {
	var m cad.SendMessage
	return define(Op{
		Name: "cad message", Short: "Send a message from one CAD agent to another, or to all", Done: "sent",
		Long: "Send a message between CAD agents. TO is an agent, or broadcast. JSON is an object, @file, or - for stdin; it must have\n" +
			"  request    request_type: validate_component, provide_dimensions, check_compatibility, request_rework, query_status\n" +
			"  response   request_id, and status: success, failure, partial, needs_clarification\n" +
			"  broadcast  announcement: workspace_merge_complete, component_ready, task_completed, error_occurred, status_update\n" +
			"  error      error_code, such as ROLE_VIOLATION, and error_message\n" +
			"and may have more.",
		Example: `cad message reviewer designer request '{"request_type":"request_rework","component_id":"solid_1"}'`,
		Params: []*Param{
			place(&m.From, "FROM", "cadagent"), place(&m.To, "TO", "cadreceiver"),
			place((*string)(&m.Type), "TYPE", "enum:request,response,broadcast,error"),
			{Name: "content", About: "JSON", Arg: true, Need: true, Into: &m.Content, From: "json"},
			flag(&m.Trace, "trace", "trace `ID`, 32 hex digits (default a new one)"),
			flag(&m.Task, "task", "task `ID` that it belongs to").from("task"),
		},
	}, func(ctx context.Context, c *Call) (cad.AgentMessage, error) { return c.CAD.SendMessage(ctx, c.By, m) })
}

func cadInbox() *Op {
	type M = cad.AgentMessage
	var mark bool
	var o *Op
	o = listOf(Op{
		Name: "cad messages", Short: "List what a CAD agent was sent, newest first; --kind is a type", Statuses: []string{"read", "unread"},
		Long: "List what a CAD agent was sent, newest first; --agent is a sender, --kind a type. With --mark-read: those that it has\n" +
			"not read, oldest first, which are read from then on.",
		Example: "cad messages designer --mark-read\ncad messages designer --status unread",
		Params:  []*Param{flag(&mark, "mark-read", "take what is unread, and mark it read")},
		Check: func(*Call) error {
			if !mark {
				return nil
			}
			if f := *o.Filter; f.Page > 1 || f != (core.Filter{Page: f.Page, Size: f.Size}) {
				return usage("mark_read", "--mark-read takes the oldest ones: of the filters only --page-size goes with it")
			}
			o.Effect, o.Role = Writes, Operator
			return nil
		},
	}, arg("ID", "cadagent"), func(ctx context.Context, c *Call, id string, f core.Filter) (core.Page[M], error) {
		if !mark {
			return c.CAD.Messages(ctx, c.By.Tenant, id, f)
		}
		read, err := c.CAD.ReadMessages(ctx, c.By, id, cmp.Or(f.Size, core.DefaultPageSize))
		return core.Page[M]{Items: read}, err
	})
	return o
}
