package op

import (
	"cmp"
	"fmt"
	"strings"

	"swarmdeck/engine"
	"swarmdeck/engine/audit"
	"swarmdeck/engine/budget"
	"swarmdeck/engine/bus"
	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/dag"
	"swarmdeck/engine/dag/control"
	"swarmdeck/engine/dag/resource"
	"swarmdeck/engine/egress"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/files"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/host"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/notice"
	"swarmdeck/engine/operator"
	"swarmdeck/engine/retention"
	"swarmdeck/engine/session"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/swarm"
	"swarmdeck/engine/task"
	"swarmdeck/engine/tools"
	"swarmdeck/engine/witness"
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
	case []judge.Approval:
		all := make([]string, len(v))
		for i := range v {
			all[i] = o.Sentence(v[i])
		}
		return strings.Join(all, "; ")
	case judge.Approval:
		if o.Name == "approval approve" && v.Status == judge.Open {
			return fmt.Sprintf("approval %s is still open: %d of %d persons approved it: %s", v.ApprovalID, len(v.Consents), v.Needed(), strings.Join(v.Consenting(), ", "))
		}
		text := o.told("approval", v.ApprovalID, v.Subject.Headline)
		if v.Always != "" && o.Name == "approval approve" {
			text += "; from now on: " + v.Always
		}
		return text
	case estop.State:
		if v.On {
			return "emergency stop: everything is told to freeze"
		}
		return "thawed: work goes on"
	case session.Session:
		return o.told("session", v.SessionID, "")
	case fleet.Agent:
		return o.told("agent", v.Name, "")
	case []fleet.Agent:
		return o.toldAll(len(v), "agent")
	case fleet.Role:
		return o.told("role", v.Name, "of "+v.ProjectName)
	case fleet.Told:
		return "agent " + v.Agent + ": " + v.State + "; " + v.Note
	case fleet.Message:
		return o.told("message", v.MessageID, "")
	case DeletedAgent:
		return o.told("agent", v.Name, "")
	case skill.Subagent:
		return o.told("subagent", v.AgentID, v.Name)
	case Invoked:
		return o.told("subagent", v.AgentID, v.Name)
	case []Invoked:
		return o.toldAll(len(v), "subagent")
	case []skill.Change:
		if len(v) == 1 {
			return o.told("skill", v[0].Name+"@"+v[0].Version, "")
		}
		return o.toldAll(len(v), "skill")
	case skill.Source:
		return o.Done + " " + v.Path
	case bus.Message:
		return o.told("message", v.MessageID, "")
	case []bus.Message:
		return o.toldAll(len(v), "message")
	case []Offer:
		return o.toldAll(len(v), "project")
	case judge.Policy:
		if v.Status != judge.PolicyActive && (o.Name == "policy activate" || o.Name == "policy restore") {
			_, verb, _ := strings.Cut(o.Name, " ")
			return "you are the first of two: another person must " + verb + " policy " + v.PolicyID + " too"
		}
		return o.told("policy", v.PolicyID, "")
	case TestedPolicy:
		if v.Summary.Failed > 0 {
			return fmt.Sprintf("%d of %d cases fail", v.Summary.Failed, v.Summary.Total)
		}
		return fmt.Sprintf("%d of %d cases pass", v.Summary.Total, v.Summary.Total)
	case judge.PolicyTerms:
		return fmt.Sprintf("an activation needs two persons: %t, a jail: %t", v.TwoPersons, v.Jailed)
	case swarm.Tenant:
		return o.told("tenant", v.TenantID, "")
	case engine.Handover:
		return v.To + " takes over; recorded as " + v.EventID
	case tools.Server:
		return o.told("server", v.Name, "")
	case core.Page[tools.Tool]:
		return fmt.Sprintf("%s %d tools", o.Done, v.Info.Total)
	case judge.Rule:
		return o.told("rule", v.RuleID, "")
	case operator.Operator:
		return o.told("operator", v.Name, "")
	case retention.Policy:
		return o.told("retention of", v.Kind, "")
	case swarm.Slots:
		return fmt.Sprintf("%d tasks run at once", v.Slots)
	case notice.Status:
		return o.told("notice", v.Name, "")
	case audit.Key:
		return o.Done + " key " + v.KeyID
	case core.Page[dag.Recorded]:
		return fmt.Sprintf("%s %d events", o.Done, len(v.Items))
	case control.Intent:
		return o.told("intent", v.IntentID, v.Subject)
	case resource.View:
		return o.told("resource", v.ID, v.Name)
	case resource.Proposal:
		return "would fork " + v.AgentID + " to " + v.Name
	case resource.Shown:
		return o.told("snapshot", v.ID, "")
	case host.Status:
		if o.Name == "host drain" {
			return o.told("host", v.Name, remains(v))
		}
		return o.told("host", v.Name, v.Reason)
	case witness.Status:
		return o.told("witness", v.Name, "")
	case Applied:
		if v.Left {
			return "what was too old has left"
		}
		return "nothing was too old"
	case judge.BacktestReport:
		return fmt.Sprintf("%d of %d decisions would change", v.Flips, v.Checked)
	case budget.Budget:
		return o.told("budget", v.Subject, "")
	case UsedSecret:
		return o.told("secret", v.Name, "")
	case egress.Rule:
		return o.Done + " " + v.Where()
	case files.Rule:
		return o.Done + " " + v.Path
	case cad.Agent:
		return o.told("CAD agent", v.AgentID, "")
	case cad.Info:
		return fmt.Sprintf("%s at most %d CAD agents work at once", o.Done, v.MaxConcurrent)
	case Answer:
		return o.Done + " " + v.Done.Method + " in " + v.Done.WorkspaceID
	case cad.AgentMessage:
		return o.told("message", v.MessageID, string(v.MessageType)+" to "+v.ToAgentID)
	case core.Page[cad.AgentMessage]:
		return fmt.Sprintf("messages marked as read: %d", len(v.Items))
	case cad.Workspace:
		return o.told("workspace", v.WorkspaceID, "")
	case cad.Done:
		return o.told("workspace", v.WorkspaceID, "")
	case cad.Workflow:
		return o.toldWorkflow(v)
	case Decomposed:
		if !v.Begun {
			return fmt.Sprintf("workflow %s: %d tasks wait for an agent", v.WorkflowID, len(v.Assignments))
		}
		return o.toldWorkflow(v.Workflow)
	case cad.TaskAssignment:
		return about(o.Done+" "+v.AgentID+" task "+v.TaskID, v.Description)
	case fmt.Stringer:
		return v.String()
	}
	return "done: " + o.Name
}

func (o *Op) toldWorkflow(w cad.Workflow) string {
	text := o.told("workflow", w.WorkflowID, cmp.Or(w.Goal, w.ScenarioName))
	switch {
	case w.Waits != "":
		text += " (waits for " + w.Waits + ")"
	case w.State.Final() && w.Cancelled == "":
		text += " (" + w.Shown() + ")"
	}
	return text
}

func (o *Op) told(noun, id, subject string) string {
	return about(o.Done+" "+noun+" "+id, subject)
}

func (o *Op) toldAll(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%s %d %s", o.Done, n, noun)
}

func about(text, subject string) string {
	if subject == "" {
		return text
	}
	return text + ": " + subject
}
