package command

import (
	"fmt"
	"io"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/op"
)

// showCADRoles prints a list of roles, and in full the one that was named.
func (c *call) showCADRoles(page core.Page[cad.RoleTemplate]) error {
	if len(page.Items) == 1 {
		return c.show(page.Items[0])
	}
	return list(c, page, []column[cad.RoleTemplate]{
		{title: "ROLE", text: func(r cad.RoleTemplate) string { return r.Name }},
		{title: "FROM", text: func(r cad.RoleTemplate) string {
			if r.Builtin {
				return "built in"
			}
			return "tenant"
		}},
		{title: "ALLOWED", most: 60, text: func(r cad.RoleTemplate) string { return strings.Join(r.AllowedOperations, ",") }},
		{title: "FORBIDDEN", wide: true, text: func(r cad.RoleTemplate) string { return strings.Join(r.ForbiddenOperations, ",") }},
		{title: "DESCRIPTION", wide: true, text: func(r cad.RoleTemplate) string { return r.Description }},
	})
}

func cadAgentColumns(c *call) []column[cad.Agent] {
	type A = cad.Agent
	return []column[A]{
		{title: "AGENT", text: func(a A) string { return a.AgentID }},
		{title: "ROLE", text: func(a A) string { return a.Role }},
		{title: "STATUS", text: func(a A) string {
			if a.Status == cad.Terminated {
				return string(a.Status)
			}
			return a.Shown()
		}},
		{title: "WORKSPACE", text: func(a A) string { return a.WorkspaceID }},
		{title: "OPERATIONS", right: true, text: func(a A) string { return count(int64(a.OperationCount)) }},
		{title: "FAILED", right: true, text: func(a A) string { return count(int64(a.ErrorCount)) }},
		{title: "VIOLATIONS", right: true, text: violations},
		{title: "ACTIVE", right: true, text: func(a A) string { return c.age(a.LastActive.Time()) }},
		{title: "FLEET", text: func(a A) string { return a.FleetAgent }},
		{title: "NOW", wide: true, text: func(a A) string { return a.Operation }},
		{title: "MADE", wide: true, right: true, text: func(a A) string { return count(int64(a.CreatedCount)) }},
		{title: "TASK", wide: true, text: func(a A) string { return a.TaskID }},
		{title: "APPROVAL", wide: true, text: func(a A) string { return a.Waiting }},
		{title: "CREATED", wide: true, text: func(a A) string { return stamp(a.CreatedAt.Time()) }},
		{title: "LAST ERROR", most: 48, text: func(a A) string {
			if len(a.ErrorLog) == 0 {
				return ""
			}
			return a.ErrorLog[len(a.ErrorLog)-1]
		}},
	}
}

// violations counts what an agent's role did not allow, and says when it keeps
// trying.
func violations(a cad.Agent) string {
	if a.ViolationsInRow >= cad.Stubborn {
		return fmt.Sprintf("%d, %d in a row", a.RoleViolations, a.ViolationsInRow)
	}
	return count(int64(a.RoleViolations))
}

// showAnswer prints what came of an operation.
func (c *call) showAnswer(a op.Answer) error {
	return c.print(a, func(w io.Writer) error {
		if _, err := fmt.Fprintf(w, "%s by %s in %s: done\n", a.Done.Method, a.Done.AgentID, a.Done.WorkspaceID); err != nil {
			return err
		}
		return details(w, a.Data)
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

func liveCADAgents(c *call, eng *engine.Engine, tenant string) []Candidate {
	page, err := eng.CAD.Agents(c.ctx, tenant, core.Filter{Size: core.MaxPageSize})
	return candidates(page.Items, err, func(a cad.Agent) Candidate { return Candidate{a.AgentID, a.Shown() + " " + a.Role} })
}

func liveCADRoles(eng *engine.Engine, tenant string) []Candidate {
	return candidates(eng.CAD.Roles(tenant), nil, func(r cad.RoleTemplate) Candidate { return Candidate{r.Name, r.Description} })
}

func liveCADWorkspaces(c *call, eng *engine.Engine, tenant string) []Candidate {
	page, err := eng.CAD.Workspaces(c.ctx, tenant, core.Filter{Size: core.MaxPageSize})
	return candidates(page.Items, err, func(w cad.Workspace) Candidate {
		return Candidate{w.WorkspaceID, fmt.Sprintf("%d entities", w.EntityCount)}
	})
}
