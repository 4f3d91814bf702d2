package op

import (
	"fmt"

	"swarmdeck/engine/budget"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/files"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/session"
	"swarmdeck/engine/task"
)

// Sentence tells in one line what a change came to, from what Run gave back.
// Pausing and stopping are asked for: a screen shows when they are in effect.
func (o *Op) Sentence(out any) string {
	switch v := out.(type) {
	case task.Task:
		text := o.told("task", v.TaskID, v.Title)
		if o.Name == "agent assign" {
			text = about("gave agent "+v.Agent+" task "+v.TaskID, v.Title)
		}
		if v.Waiting == "approval" && o.Name != "task cancel" {
			text += " (waits for approval)"
		}
		return text
	case judge.Approval:
		if o.Name == "approval approve" && v.Status == judge.Open {
			return fmt.Sprintf("approval %s is still open: at %s risk a second operator must approve it too, after %s", v.ApprovalID, v.Risk, v.FirstBy)
		}
		return o.told("approval", v.ApprovalID, v.Intent)
	case estop.State:
		if v.On {
			return "emergency stop: everything is told to freeze"
		}
		return "thawed: work goes on"
	case session.Session:
		return o.told("session", v.SessionID, "")
	case fleet.Agent:
		return o.told("agent", v.Name, "")
	case DeletedAgent:
		return o.told("agent", v.Name, "")
	case budget.Budget:
		return o.told("budget", v.Subject, "")
	case UsedSecret:
		return o.told("secret", v.Name, "")
	case egress.Rule:
		return o.Done + " " + v.Where()
	case files.Rule:
		return o.Done + " " + v.Path
	}
	return "done: " + o.Name
}

func (o *Op) told(noun, id, subject string) string {
	return about(o.Done+" "+noun+" "+id, subject)
}

func about(text, subject string) string {
	if subject == "" {
		return text
	}
	return text + ": " + subject
}
