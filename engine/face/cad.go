package face

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/cad/model"
)

func cads() []*Face {
	return []*Face{
		Of[cad.Agent]{
			Noun: "CAD agent", Called: "agent", ID: "agent_id",
			List:    "STATUS:11 AGENT:12*2km ROLE:9*1 WORKSPACE:10*2/2m OPS:4/3 OK:5/1r VIOLATIONS:10/1 ACTIVE:6/4 NOW:14*3/5 -LAST_ERROR",
			Columns: "AGENT:agent_id ROLE:role STATUS WORKSPACE:workspace_id OPS:operation_count FAILED:error_count VIOLATIONS,right ACTIVE:last_active,age FLEET:fleet_agent LAST_ERROR,48",
			Wide:    "NOW:operation MADE:created_count TASK:task_id APPROVAL:approval_id CREATED:created_at",
			Cells: Cells[cad.Agent]{
				"STATUS": func(a *cad.Agent, _ At) string {
					if a.Status == cad.Terminated {
						return string(a.Status)
					}
					return a.Shown()
				},
				"VIOLATIONS": violations,
				"LAST_ERROR": func(a *cad.Agent, _ At) string {
					if len(a.ErrorLog) == 0 {
						return ""
					}
					return a.ErrorLog[len(a.ErrorLog)-1]
				},
			},
		}.Face(),
		Of[cad.RoleTemplate]{
			Noun: "role", ID: "name", Head: "description",
			Columns: "ROLE:name FROM ALLOWED:allowed_operations,60",
			Wide:    "FORBIDDEN:forbidden_operations DESCRIPTION:description",
			Cells: Cells[cad.RoleTemplate]{"FROM": func(r *cad.RoleTemplate, _ At) string {
				if r.Builtin {
					return "built in"
				}
				return "tenant"
			}},
		}.Face(),
		Of[cad.AgentMessage]{
			Noun: "message", ID: "message_id",
			Head:    "WHAT",
			Cells:   Cells[cad.AgentMessage]{"WHAT": func(m *cad.AgentMessage, _ At) string { return string(m.MessageType) + " to " + m.ToAgentID }},
			Columns: "MESSAGE:message_id FROM:from_agent_id TO:to_agent_id TYPE:message_type READ:read AGE:timestamp,age CONTENT:content,60",
			Wide:    "TASK:task_id TRACE:trace_id",
		}.Face(),
		Of[cad.Workspace]{
			Noun: "workspace", ID: "workspace_id",
			List:    "WORKSPACE:12*3km BASE:6*1/4m BY:8*2/3m SOLIDS:6 ENTITIES:8/2 OPS:4/2 CONFLICTS:9 KERNEL:8/5 CHANGED:7/1",
			Columns: "WORKSPACE:workspace_id BASE:base_workspace_id KERNEL:kernel ENTITIES:entity_count SOLIDS:solid_count CONFLICTS:conflict_count OPS:seq CHANGED:updated_at,age BY:agent_id",
			Wide:    "NAME:workspace_name CREATED:created_at DIRECTORY:directory",
		}.Face(),
		Of[model.Entity]{
			Columns: "ENTITY:entity_id TYPE:entity_type BY:created_by PROPERTIES:properties,80",
			Wide:    "HASH:hash SHAPE:shape",
		}.Face(),
		Of[model.Entry]{
			Columns: "SEQ:seq METHOD:method BY:agent_id AGE,right PUT:put,len REMOVED:removed,len PARAMS:params,60",
			Cells: Cells[model.Entry]{
				"AGE": func(e *model.Entry, at At) string {
					made, _ := time.Parse(time.RFC3339Nano, e.At) // one that is none has no age
					return at.Age(made)
				},
			},
		}.Face(),
		Of[model.Conflict]{
			List:    "CONFLICT:18 ENTITY:12*2km WITH:8*1/3m SOURCE:10*2/1m INTO:10*2m DESCRIPTION:20*4/2",
			Columns: "ENTITY:entity_id CONFLICT:conflict_type SOURCE:source_workspace_id INTO:target_workspace_id WITH:with_entity_id DESCRIPTION:description,80",
		}.Face(),
		Of[cad.Done]{
			Noun: "workspace", ID: "workspace_id",
			Columns: "WORKSPACE:workspace_id SEQ,right PUT:entities,60 REMOVED:removed,40",
			Cells: Cells[cad.Done]{
				"SEQ": func(d *cad.Done, _ At) string {
					if d.Seq == 0 {
						return "unchanged"
					}
					return fmt.Sprint(d.Seq)
				},
			},
		}.Face(),
		Of[cad.Scenario]{
			Noun: "scenario", ID: "scenario_name", Head: "description",
			Columns: "SCENARIO:scenario_name PATTERN:workflow_pattern AGENTS:agent_assignments,len TASKS:task_sequence,len ESTIMATE,right ORIGIN DESCRIPTION:description,60",
			Cells: Cells[cad.Scenario]{
				"ESTIMATE": func(s *cad.Scenario, _ At) string { return fmt.Sprintf("%gs", s.EstimatedDuration) },
				"ORIGIN": func(s *cad.Scenario, _ At) string {
					if s.Builtin {
						return "builtin"
					}
					return "swarm file"
				},
			},
		}.Face(),
		Of[cad.Workflow]{
			Noun: "workflow", Says: WorkflowSays,
			ID: "workflow_id", Head: "GOAL",
			List:    "STATE:17 DONE:16/2 SCENARIO:16*3km TASKS:6 FAILED:6 AGENTS:6/3 OPS:4/4 ROUNDS:6/5 TOOK:6/3 AGE:4/1 -WORKFLOW",
			Columns: "WORKFLOW:workflow_id SCENARIO:scenario_name STATE:execution_state DONE,right TASKS,right OPS:metrics.total_operations AGENTS:metrics.agents_used TOOK,right FAILURE,60",
			Wide:    "AGE:created_at,age ROUNDS:metrics.rework_rounds STARTED:started_at FILES",
			Cells: Cells[cad.Workflow]{
				"GOAL":  func(w *cad.Workflow, _ At) string { return cmp.Or(w.Goal, w.ScenarioName) },
				"DONE":  func(w *cad.Workflow, _ At) string { return fmt.Sprintf("%.0f%%", w.Completion) },
				"TASKS": func(w *cad.Workflow, _ At) string { return fmt.Sprintf("%d/%d", w.Metrics.Completed, w.Metrics.Tasks) },
				"TOOK":  func(w *cad.Workflow, _ At) string { return fmt.Sprintf("%.1fs", w.Metrics.TotalDuration) },
				"FILES": func(w *cad.Workflow, at At) string { return at.Near(w.Directory) },
				"FAILURE": func(w *cad.Workflow, _ At) string {
					for i := len(w.Failures) - 1; i >= 0; i-- {
						if f := w.Failures[i]; !f.Again {
							return f.TaskID + " (" + f.AgentID + "): " + f.Error
						}
					}
					return w.Cancelled
				},
			},
		}.Face(),
		Of[cad.TaskAssignment]{
			ID: "WHOSE", Head: "description",
			Columns: "TASK:task_id STATUS AGENT:agent_id ROLE:role_name NEEDS:dependencies,30 OPS,right DESCRIPTION,60",
			Wide:    "WORKSPACE:workspace_id WORKFLOW:workflow_id CARRIED_OUT_BY:swarm_task_id",
			Cells: Cells[cad.TaskAssignment]{
				"STATUS": func(a *cad.TaskAssignment, _ At) string {
					switch {
					case a.Waiting != "":
						return "waiting for you"
					case a.Open():
						return "unassigned"
					}
					return string(a.Status)
				},
				"WHOSE":       func(a *cad.TaskAssignment, _ At) string { return a.AgentID + " task " + a.TaskID },
				"OPS":         func(a *cad.TaskAssignment, _ At) string { return fmt.Sprintf("%d/%d", a.Done, a.DoneBefore+a.Steps()) },
				"DESCRIPTION": func(a *cad.TaskAssignment, _ At) string { return cmp.Or(a.Failure().Message, a.Description) },
			},
		}.Face(),
	}
}

// violations counts what an agent's role did not allow, and says when it keeps
// trying.
func violations(a *cad.Agent, _ At) string {
	if a.ViolationsInRow >= cad.Stubborn {
		return fmt.Sprintf("%d, %d in a row", a.RoleViolations, a.ViolationsInRow)
	}
	return strings.TrimPrefix(strconv.Itoa(a.RoleViolations), "0") // "" for none
}
