package face

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/dag/resource"
)

func recorded() []*Face {
	return []*Face{
		Of[dag.Recorded]{
			Noun: "event", ID: "Event.EventID", Head: "Event.Kind",
			Columns: "SEQ:Seq EVENT:Event.event_id,13 KIND:Event.kind AGENT:Event.agent_id,20 RUN:Event.run_id,20 AGE:Event.ts,age WHAT,60",
			Wide:    "POS:Pos TS:Event.ts CORRELATION:Event.correlation_id TASK:Event.task_id TRACE:Event.trace_id",
			Cells: Cells[dag.Recorded]{
				"WHAT": func(e *dag.Recorded, _ At) string { return e.Event.Brief() },
			},
		}.Face(),
		Of[dag.Moment]{
			Columns: "TS KIND:Event.kind STATUS:Status MS,right AGENT:Event.agent_id,20 EVENT:Event.event_id,13 WHAT,60",
			Wide:    "RUN:Event.run_id TASK:Event.task_id",
			Cells: Cells[dag.Moment]{
				"TS": func(m *dag.Moment, _ At) string { return m.Event.TS.Time().Format("2006-01-02T15:04:05.000Z07:00") },
				"MS": func(m *dag.Moment, _ At) string {
					if ms, ok := m.Took(); ok {
						return strconv.FormatInt(ms, 10)
					}
					return ""
				},
				"WHAT": func(m *dag.Moment, _ At) string {
					if m.Message != nil {
						return m.Message.Brief()
					}
					return m.Brief()
				},
			},
		}.Face(),
		Of[dag.Call]{
			Columns: "CALL:call_id,20 SERVER:server,20 TOOL:tool,24 STATUS:status MS:duration_ms AGENT:agent_id,20 AGE:called_at,age ARGS:args,40",
			Wide:    "RUN:run_id CALL_EVENT:call_event RESULT_EVENT:result_event RESULT:result",
		}.Face(),
		Of[dag.Step]{
			Columns: "STEP:depth NODE:node,40 EDGE:edge.type FROM:edge.from,30 TO:edge.to,30 EVENT:event_id,13",
			Wide:    "TS:ts",
		}.Face(),
		Of[dag.ResourceAt]{
			Columns: "RESOURCE:id,40 KIND:resource.kind NAME:resource.name,24 LIVENESS:liveness.status OWNERS:owners,40 MOUNTS:mounts,len AGE:valid_from,age",
			Wide:    "EVENT:event_id",
		}.Face(),
		Of[dag.Mount]{
			Columns: "RESOURCE:resource_id,40 HOLDER:holder,40 MODE:mode MOUNT:mount,40 FROM:valid_from TO:valid_to",
			Wide:    "EVENT:event_id",
		}.Face(),
		Of[dag.PolicyChange]{
			Columns: "POLICY:policy_id,40 CHANGE:change RULES:active TESTS BY,20 AGE:ts,age EVENT:event_id,13 NOTES:notes,40",
			Cells: Cells[dag.PolicyChange]{
				"TESTS": func(p *dag.PolicyChange, _ At) string {
					if p.Policy == nil || p.Policy.TestsSummary == nil {
						return ""
					}
					return fmt.Sprintf("%d/%d", p.Policy.TestsSummary.Passed, p.Policy.TestsSummary.Total)
				},
				"BY": func(p *dag.PolicyChange, _ At) string { return cmp.Or(p.By, p.AgentID) },
			},
		}.Face(),
		Of[dag.Message]{
			Columns: "MESSAGE:id,20 ROLE:role TEXT,100",
			Cells:   Cells[dag.Message]{"TEXT": func(m *dag.Message, _ At) string { return m.Short() }},
		}.Face(),
		Of[resource.Part]{
			Columns: "RESOURCE:resource.id,24 PLAN ALLOWED:allowed AS_IT_WAS:exact NOTE:note,80", Wide: "NAME:resource.name",
			Cells: Cells[resource.Part]{"PLAN": func(x *resource.Part, _ At) string { return strings.TrimSuffix(string(x.Mode)+":"+x.KeptBy, ":") }},
		}.Face(),
		Of[resource.View]{
			Noun: "resource", ID: "id", Head: "name",
			Columns: "RESOURCE:id,24 KIND:kind BY:driver ATTACHED,40 CAN:capabilities,30 LIVENESS:probed.status SNAPSHOTS:snapshots NAME:name,60",
			Cells: Cells[resource.View]{
				"ATTACHED": func(v *resource.View, _ At) string {
					return strings.Join(core.Map(v.Holders, func(h resource.Holder) string { return h.AgentID + ":" + string(h.Mode) }), " ")
				},
			},
		}.Face(),
		Of[resource.Shown]{
			Noun: "snapshot", ID: "id",
			Columns: "SNAPSHOT:id,24 RESOURCE:resource_ref,24 METHOD:method AGENT:agent_id,20 AGE:created_at,age BYTES:size_bytes STATE:external_ref.id,20 NOTES:notes,lines,60",
		}.Face(),
		Of[control.Intent]{
			Noun: "intent", ID: "intent_id", Head: "subject",
			Columns: "INTENT:intent_id STATUS:status ACTION,24 SUBJECT:subject,30 AGENT:agent_id,20 AGE:created_at,age WHY:why,60",
			Wide:    "BY:by,20 TRIES:tries TASK:task_id",
			Cells: Cells[control.Intent]{
				"ACTION": intentAction,
			},
		}.Face(),
		Of[control.StepState]{
			Columns: "ACTION:action STATUS:status TRIES:tries CALL:call_event,13 SEEN:result_event,13 ARGS:args,40 RESULT,60",
			Wide:    "UNDO:undo_event,13",
			Cells: Cells[control.StepState]{
				"RESULT": func(s *control.StepState, _ At) string {
					if s.Error != nil {
						return s.Error.Code + ": " + s.Error.Message
					}
					return string(s.Result)
				},
			},
		}.Face(),
	}
}

// intentAction is the step at hand, and which of how many it is.
func intentAction(i *control.Intent, _ At) string {
	if i.At < 1 || i.At > len(i.Steps) {
		return ""
	}
	action := i.Steps[i.At-1].Action
	if len(i.Steps) > 1 {
		action = fmt.Sprintf("%s %d/%d", action, i.At, len(i.Steps))
	}
	return action
}
