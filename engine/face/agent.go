package face

import (
	"strings"

	"swarmdeck/engine/fleet"
	trees "swarmdeck/engine/tree"
)

// AgentTool is what tools see of an agent.
const AgentTool = `name workspace_id status role project last_task created_at updated_at runtime session_id tokens=usage.tokens cost_usd=usage.cost_usd
			state=STATE: starting, idle, working, waiting for you, pausing, paused, offline or failed
			profile: how much of the machine it reaches: reader, worker or open
			reason: why it is offline or failed
			task_id: what it works on
			attention: why it asks for a person
			approval_id=waiting: the approval it waits for`

func agents() []*Face {
	return []*Face{
		Of[fleet.Agent]{
			Noun: "agent", ID: "name", Tool: AgentTool,
			Columns: "NAME:name STATE PROJECT:project,20 ROLE:role,20 AGE:created_at,age LAST,48",
			Wide:    "STATUS:status PROFILE:profile RUNTIME:runtime PID:pid RESTARTS:restarts SESSION:session_id TASK:task_id ENDED:last_status TOKENS:usage.tokens COST:usage.cost_usd,usd COMMAND:command,argv",
			Cells: Cells[fleet.Agent]{
				"STATE": func(a *fleet.Agent, _ At) string { return a.State() },
				"LAST": func(a *fleet.Agent, _ At) string {
					stuck := ""
					if a.Stuck != nil {
						stuck = a.Stuck.Text
					}
					for _, s := range []string{a.Reason, a.Attention, stuck, a.LastTask} {
						if strings.TrimSpace(s) != "" {
							return s
						}
					}
					return ""
				},
			},
		}.Face(),
		Of[fleet.HistoryItem]{
			Noun: "task", Called: "history", ID: "task_id", Head: "message",
			Columns: "TASK:task_id STATUS:status NEEDS_YOU:needs_user_attention AGE:created_at,age MESSAGE:message,60",
			Wide:    "CREATED:created_at URI:uri",
		}.Face(),
		Of[fleet.Message]{
			Noun: "message", ID: "message_id",
			Columns: "PLACE:place MESSAGE:message_id WHEN BY:created_by AGE:created_at,age TEXT:text,60",
			Wide:    "URI:uri",
			Cells: Cells[fleet.Message]{
				"WHEN": messageWhen,
			},
		}.Face(),
		Of[fleet.Project]{
			Noun: "project", ID: "name", Head: "description",
			Columns: "PROJECT:name DESCRIPTION:description,60",
			Wide:    "ID:id",
		}.Face(),
		Of[fleet.Role]{
			Noun: "role", ID: "name", Head: "OF",
			Tool:    "id name project_id project_name runtime profile\ntools: that its agents may ask for; none is all",
			Columns: "ROLE:name PROJECT:project_name MADE_AS,60",
			Wide:    "ID:id",
			Cells: Cells[fleet.Role]{
				"OF":      func(r *fleet.Role, _ At) string { return "of " + r.ProjectName },
				"MADE_AS": roleMade,
			},
		}.Face(),
		Of[trees.Remark]{
			Columns: "N:id PLACE,60 REMARK:text,80 BY:by",
			Cells: Cells[trees.Remark]{
				"PLACE": func(r *trees.Remark, _ At) string { return r.Place() },
			},
		}.Face(),
		Of[trees.Viewed]{
			Columns: "FILE:file,80 BY:by",
		}.Face(),
		Of[trees.Checks]{
			Columns: "PROJECT:project CHECKS:checks,lines,120 ENV:env,120 SETUP:setup,lines,120 REMOTES:remotes,200 GUARDED:guarded,200",
		}.Face(),
	}
}

// messageWhen says when an agent is told a message.
func messageWhen(m *fleet.Message, _ At) string {
	switch {
	case m.Held != "":
		return "held"
	case m.Told != "":
		return "told"
	case m.Steers:
		return "now"
	}
	return "after"
}

// roleMade says what agents of a role are made with.
func roleMade(r *fleet.Role, _ At) string {
	if r.Template == nil {
		return ""
	}
	parts := append([]string{r.Runtime}, r.Command...)
	if r.Profile != "" {
		parts = append(parts, "("+r.Profile+")")
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}
