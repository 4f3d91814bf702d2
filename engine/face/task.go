package face

import (
	"fmt"
	"strconv"
	"time"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/session"
	"swarmdeck/engine/task"
)

// used is what was used of a limit; 0 is none.
func used(used, limit string, unlimited bool) string {
	if unlimited {
		return used
	}
	return used + "/" + limit
}

func tasks() []*Face {
	return []*Face{
		Of[task.Task]{
			Noun: "task", ID: "task_id", Head: "title", Says: taskSays,
			Tool:    "*-input", // who gave it has it
			List:    "STATUS:11 TITLE:20*5 WHY:16*3/1 AGENT:12*2/2 AGE:4/3 KIND:8*1/4 PRI:3/20 TASK:4ki",
			Columns: "TASK:task_id STATUS KIND:kind,24 AGENT:agent PRI:priority TRY,right AGE:created_at,age TITLE:title,40",
			Wide:    "SESSION:session_id TRACE:trace_id PARENT:parent_task_id CREATED:created_at COMPLETED:completed_at APPROVAL:approval_id ERROR:error_code",
			Cells: Cells[task.Task]{
				"STATUS": func(t *task.Task, _ At) string {
					switch {
					case t.Waiting != "":
						return string(t.Status) + " (" + t.Waiting + ")"
					case t.Paused && !t.Status.Terminal():
						return string(t.Status) + " (paused)"
					case t.RetriedAs != "":
						return string(t.Status) + " (retried)"
					}
					return string(t.Status)
				},
				"TRY": func(t *task.Task, _ At) string { return fmt.Sprintf("%d/%d", t.Attempt+1, max(1, t.MaxAttempts)) },
			},
		}.Face(),
		Of[task.Result]{
			Noun: "result", ID: "task_id",
			Columns: "TASK:task_id STATUS:status CONF:confidence AGE:completed_at,age OUTCOME,60",
			Wide:    "COMPLETED:completed_at BY:produced_by TRACE:trace_id DENIALS:denials,len",
			Cells: Cells[task.Result]{
				"OUTCOME": func(r *task.Result, _ At) string {
					if r.Error != nil {
						return r.Error.Code + ": " + r.Error.Message
					}
					return string(r.Output)
				},
			},
		}.Face(),
		Of[task.LogLine]{
			Noun: "line", Called: "log",
			Columns: "TIME:timestamp LEVEL:level MESSAGE:message",
			Wide:    "SOURCE:source TASK:task_id",
		}.Face(),
		Of[session.Session]{
			Noun: "session", ID: "session_id", Head: "name",
			List:    "STATE:10 NAME:10*2/1 REASON:10*3/2 AGE:4/3 ACKS:8/4 SESSION:4ki",
			Columns: "SESSION:session_id NAME:name,24 STATE AGE:created_at,age REASON:reason,40",
			Wide:    "CREATED:created_at UPDATED:updated_at WAITING_FOR:pausing",
			Cells: Cells[session.Session]{
				"STATE": func(s *session.Session, _ At) string {
					if n := len(s.Pausing); n > 0 {
						return s.Shown() + " (" + strconv.Itoa(n) + ")"
					}
					return s.Shown()
				},
			},
		}.Face(),
		Of[budget.Budget]{
			Noun: "budget", ID: "subject",
			Columns: "SUBJECT:subject TOKENS,right COST,right TASKS,right TIME,right REACHED:reached",
			Wide:    "UPDATED:updated_at",
			Cells: Cells[budget.Budget]{
				"TOKENS": func(b *budget.Budget, _ At) string {
					return used(fmt.Sprint(b.Used.Tokens), fmt.Sprint(b.Tokens), b.Tokens == 0)
				},
				"COST": func(b *budget.Budget, _ At) string {
					return used(fmt.Sprintf("$%.2f", b.Used.CostUSD), fmt.Sprintf("$%.2f", b.CostUSD), b.CostUSD == 0)
				},
				"TASKS": func(b *budget.Budget, _ At) string {
					return used(fmt.Sprint(b.Used.Tasks), fmt.Sprint(b.Tasks), b.Tasks == 0)
				},
				"TIME": func(b *budget.Budget, _ At) string {
					return used(Span(time.Duration(b.Used.WallMS)*time.Millisecond), Span(time.Duration(b.WallS)*time.Second), b.WallS == 0)
				},
			},
		}.Face(),
	}
}
