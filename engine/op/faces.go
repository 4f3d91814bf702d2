package op

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	"swarmdeck/engine"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/face"
	"swarmdeck/engine/tree"
)

// FaceOf is how records of a type are shown, see face; nil where none says it.
func FaceOf(t reflect.Type) *face.Face {
	if f := face.Find(face.All(), t); f != nil {
		return f
	}
	return face.Find(faces(), t)
}

// faces are those of what operations give back beside what the engine keeps.
func faces() []*face.Face {
	return []*face.Face{
		face.Of[Invoked]{
			Noun: "subagent", ID: "agent_id", Head: "name",
			Tool: `agent_id name state skill task_id trace_id error
				approval_id=waiting: the approval it waits for
				results: by skill name`,
			Columns: "SUBAGENT:agent_id NAME:name,24 STATE SKILL:skill NOW:step AGE:created_at,age OUTCOME,48",
			Wide:    "RESULTS:results,len TASK:task_id SESSION:session_id APPROVAL:waiting COMPLETED:completed_at",
			Cells: face.Cells[Invoked]{
				"STATE":   func(v *Invoked, _ face.At) string { return v.Shown() },
				"OUTCOME": func(v *Invoked, _ face.At) string { return cmp.Or(v.Error, string(v.Result)) },
			},
		}.Face(),
		face.Of[InOrder]{Columns: "STEP:position SKILL:name VERSION:version NEEDS:dependencies"}.Face(),
		face.Of[Offer]{Noun: "project", ID: "name", Columns: "PROJECT:name ROLES:roles", Wide: "ID:id DESCRIPTION:description,60"}.Face(),
		face.Of[UsedSecret]{
			Noun: "secret", ID: "name",
			Columns: "SECRET:name AGE:created_at,age CHANGED:updated_at,age BY:updated_by,20 AGENTS:agents,60", Wide: "ORIGIN:origin",
		}.Face(),
		face.Of[DeletedAgent]{
			Noun: "agent", ID: "name", Tool: face.AgentTool,
			Cells: face.Cells[DeletedAgent]{"STATE": func(a *DeletedAgent, _ face.At) string { return a.State() }},
		}.Face(),
		face.Of[ShownAgent]{
			Noun: "agent", ID: "name", Tool: face.AgentTool,
			Cells: face.Cells[ShownAgent]{"STATE": func(a *ShownAgent, _ face.At) string { return a.State() }},
		}.Face(),
		face.Of[TestedPolicy]{Says: func(t *TestedPolicy, _, _ string) string {
			if t.Summary.Failed > 0 {
				return fmt.Sprintf("%d of %d cases fail", t.Summary.Failed, t.Summary.Total)
			}
			return fmt.Sprintf("%d of %d cases pass", t.Summary.Total, t.Summary.Total)
		}}.Face(),
		face.Of[engine.Handover]{Says: func(h *engine.Handover, _, _ string) string {
			return h.To + " takes over; recorded as " + h.EventID
		}}.Face(),
		face.Of[Applied]{Says: func(a *Applied, _, _ string) string {
			if a.Left {
				return "what was too old has left"
			}
			return "nothing was too old"
		}}.Face(),
		face.Of[Answer]{ID: "WHAT", Cells: face.Cells[Answer]{
			"WHAT": func(a *Answer, _ face.At) string { return a.Done.Method + " in " + a.Done.WorkspaceID },
		}}.Face(),
		face.Of[Decomposed]{Noun: "workflow", ID: "workflow_id", Says: func(d *Decomposed, told, op string) string {
			if d.Begun {
				return face.WorkflowSays(&d.Workflow, told+": "+d.Goal, op)
			}
			return fmt.Sprintf("workflow %s: %d tasks wait for an agent", d.WorkflowID, len(d.Assignments))
		}}.Face(),
		workFace(), connectionFace(), forkFace(),
		face.Of[engine.ReplayedCall]{
			Columns: "WAS:was WOULD:would TOOL:tool,24 BECAUSE:reason_code,24 AGENT:agent_id,20 EVENT:event_id,13 ARGS:args,40",
			Wide:    "RULE:rule_id CALL:call_id",
		}.Face(),
		face.Of[engine.OpenAsk]{
			Columns: "APPROVAL:approval_id RISK:risk LEFT,right AGENT:agent WHAT:headline,60",
			Wide:    "DEADLINE:deadline_at TASK:task_id FOR:escalated_to APPROVED_BY:approved_by",
			Cells:   face.Cells[engine.OpenAsk]{"LEFT": func(a *engine.OpenAsk, at face.At) string { return at.Left(a.DeadlineAt) }},
		}.Face(),
		face.Of[engine.Answered]{
			Columns: "APPROVAL:approval_id STATUS RISK:risk BY:answered_by TOOK:decided_s,s WHAT:headline,40 REASON:answer_reason,40",
			Wide:    "AT:answered_at WAITED:waited_s,s",
			Cells: face.Cells[engine.Answered]{"STATUS": func(a *engine.Answered, _ face.At) string {
				if a.Edited {
					return string(a.Status) + ", edited"
				}
				return string(a.Status)
			}},
		}.Face(),
		face.Of[engine.FailedTask]{Columns: "TASK:task_id STATUS:status ERROR:error_code AGENT:agent AGE:completed_at,age TITLE:title,48"}.Face(),
		face.Of[engine.TroubledOne]{Columns: "AGENT:name STATE:state TASK:task_id WHY:why,80"}.Face(),
		face.Of[engine.NearBudget]{
			Columns: "SUBJECT:subject LIMIT:limit USED,right",
			Cells:   face.Cells[engine.NearBudget]{"USED": func(b *engine.NearBudget, _ face.At) string { return fmt.Sprintf("%.0f%%", 100*b.Share) }},
		}.Face(),
		face.Of[Need]{
			Columns: "LEFT,right RISK:risk WHAT:what,72 NEXT",
			Cells: face.Cells[Need]{
				"LEFT": func(n *Need, at face.At) string { return at.Left(n.DeadlineAt) },
				"NEXT": func(n *Need, _ face.At) string { return nextLine(n.Next) },
			},
		}.Face(),
		face.Of[Failure]{
			Columns: "AGE:completed_at,age STATUS:status AGENT:agent TITLE:title,30 WHY:why,60 NEXT",
			Cells:   face.Cells[Failure]{"NEXT": func(f *Failure, _ face.At) string { return nextLine(f.Next) }},
		}.Face(),
		face.Of[Working]{Columns: "FOR:started_at,age AGENT:agent STATE:state TASK:task_id TITLE:title,60"}.Face(),
		face.Of[engine.StopChange]{Columns: "AT:at WHAT:event_type BY:by REASON:reason,60"}.Face(),
	}
}

// nextLine is the likeliest of what is next.
func nextLine(next []string) string { return append(next, "")[0] }

func workFace() *face.Face {
	return face.Of[Work]{
		Columns: "AGENT:agent STATUS:agent_status FILES,right +:added -:removed BASE REMARKS:remarks,len CHECKS SAME_FILES_AS,40", Wide: "TREE:path",
		Cells: face.Cells[Work]{
			"FILES": func(w *Work, _ face.At) string {
				if w.Away != "" {
					return "on " + w.Away
				}
				return fmt.Sprint(len(w.Changes))
			},
			"BASE":          func(w *Work, _ face.At) string { return w.BaseText() },
			"CHECKS":        func(w *Work, _ face.At) string { return w.CheckedText() },
			"SAME_FILES_AS": func(w *Work, _ face.At) string { return strings.Join(w.Overlap, "; ") },
		},
	}.Face()
}

// BaseText is what work goes out from, and whether that went on since.
func (w Work) BaseText() string {
	base := w.Base
	if w.Kind == tree.Plain {
		base = w.Source
	}
	switch {
	case w.BehindBy > 0:
		base += fmt.Sprintf(" (moved on by %d)", w.BehindBy)
	case w.Behind:
		base += " (moved on)"
	}
	return base
}

// CheckedText is what came of the checks: pass, fail, of before; "" for none.
func (w Work) CheckedText() string {
	switch {
	case w.Checked == nil:
		return ""
	case w.Checked.State != w.State:
		return "of before"
	case w.Checked.OK:
		return "pass"
	}
	return "fail"
}

// connected is what the events of connections say.
type connected struct {
	ID     string `json:"id"`
	Detail struct {
		Run      string `json:"run"`
		Process  string `json:"process"`
		Method   string `json:"method"`
		Path     string `json:"path"`
		Reason   string `json:"reason"`
		Count    int    `json:"connections"`
		Refused  int    `json:"refused"`
		Sent     int64  `json:"sent_bytes"`
		Received int64  `json:"received_bytes"`
	} `json:"detail"`
}

func connectionFace() *face.Face {
	says := func(what func(p *connected) string) func(*Connection, face.At) string {
		return func(e *Connection, _ face.At) string {
			var p connected
			_ = core.DecodeStored(e.Payload, &p) // an event of another shape has empty cells
			return what(&p)
		}
	}
	number := func(of func(p *connected) int64) func(*Connection, face.At) string {
		count := says(func(p *connected) string { return fmt.Sprint(of(p)) })
		return func(e *Connection, at face.At) string {
			if e.EventType != "egress.used" {
				return ""
			}
			return count(e, at)
		}
	}
	return face.Of[Connection]{
		Columns: "AGE:created_at,age WHAT HOST,50 REQUEST,50 BY:actor,24 PROCESS CONNECTIONS,right SENT,right RECEIVED,right WHY,60",
		Wide:    "REFUSED,right RUN EVENT:event_id",
		Cells: face.Cells[Connection]{
			"WHAT":        func(e *Connection, _ face.At) string { return strings.TrimPrefix(e.EventType, "egress.") },
			"HOST":        says(func(p *connected) string { return p.ID }),
			"REQUEST":     says(func(p *connected) string { return strings.TrimSpace(p.Detail.Method + " " + p.Detail.Path) }),
			"PROCESS":     says(func(p *connected) string { return p.Detail.Process }),
			"RUN":         says(func(p *connected) string { return p.Detail.Run }),
			"WHY":         says(func(p *connected) string { return p.Detail.Reason }),
			"CONNECTIONS": number(func(p *connected) int64 { return int64(p.Detail.Count) }),
			"SENT":        number(func(p *connected) int64 { return p.Detail.Sent }),
			"RECEIVED":    number(func(p *connected) int64 { return p.Detail.Received }),
			"REFUSED":     number(func(p *connected) int64 { return int64(p.Detail.Refused) }),
		},
	}.Face()
}

func forkFace() *face.Face {
	one := func(fork func(*dag.Fork) any, ancestor func(*dag.Ancestor) any) func(*ForkRow, face.At) string {
		return func(r *ForkRow, at face.At) string {
			var v any
			switch {
			case r.One != nil:
				v = fork(r.One)
			case r.Other != nil:
				v = ancestor(r.Other)
			}
			if ts, is := v.(interface{ Time() time.Time }); is {
				return at.Age(ts.Time())
			}
			return fmt.Sprint(v)
		}
	}
	return face.Of[ForkRow]{
		Columns: "AGENT,30 FROM,40 TO,30 AT,13 AGE,right EVENT,13",
		Cells: face.Cells[ForkRow]{
			"AGENT": one(func(f *dag.Fork) any { return f.AgentID }, func(a *dag.Ancestor) any { return a.Of }),
			"FROM":  one(func(f *dag.Fork) any { return f.FromBranch }, func(a *dag.Ancestor) any { return a.Node }),
			"TO": one(func(f *dag.Fork) any { return strings.TrimSpace(f.ToBranch + " " + strings.Join(f.Subagents, " ")) },
				func(a *dag.Ancestor) any { return a.Edge }),
			"AT": one(func(f *dag.Fork) any {
				if f.AtEvent == nil {
					return ""
				}
				return f.AtEvent.EventID
			}, func(a *dag.Ancestor) any { return a.Depth }),
			"AGE":   one(func(f *dag.Fork) any { return f.TS }, func(a *dag.Ancestor) any { return a.TS }),
			"EVENT": one(func(f *dag.Fork) any { return f.EventID }, func(a *dag.Ancestor) any { return a.EventID }),
		},
	}.Face()
}
