package face

import (
	"fmt"
	"strings"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/host"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/task"
)

// All are the faces of what the engine keeps.
func All() []*Face {
	var all []*Face
	for _, some := range []func() []*Face{tasks, agents, judged, audited, tenants, trends, wall, messages, skills, cads, recorded, answers} {
		all = append(all, some()...)
	}
	return all
}

// answers are results that are shown in a sentence alone.
func answers() []*Face {
	return []*Face{
		Of[estop.State]{Says: func(s *estop.State, _, _ string) string {
			if s.On {
				return "emergency stop: everything is told to freeze"
			}
			return "thawed: work goes on"
		}}.Face(),
		Of[fleet.Told]{Says: func(t *fleet.Told, _, _ string) string { return "agent " + t.Agent + ": " + t.State + "; " + t.Note }}.Face(),
		Of[judge.PolicyTerms]{Says: func(t *judge.PolicyTerms, _, _ string) string {
			return fmt.Sprintf("an activation needs two persons: %t, a jail: %t", t.TwoPersons, t.Jailed)
		}}.Face(),
		Of[judge.BacktestReport]{Says: func(r *judge.BacktestReport, _, _ string) string {
			return fmt.Sprintf("%d of %d decisions would change", r.Flips, r.Checked)
		}}.Face(),
		Of[cad.Info]{Says: func(i *cad.Info, told, _ string) string {
			return fmt.Sprintf("%sat most %d CAD agents work at once", told, i.MaxConcurrent)
		}}.Face(),
	}
}

func taskSays(t *task.Task, told, op string) string {
	if op == "agent assign" {
		told = "gave agent " + t.Agent + strings.TrimPrefix(told, "gave work to")
	}
	if t.Waiting == "approval" && op != "task cancel" {
		told += " (waits for approval)"
	}
	return told
}

func approvalSays(a *judge.Approval, told, op string) string {
	switch {
	case op != "approval approve":
	case a.Status == judge.Open:
		return fmt.Sprintf("approval %s is still open: %d of %d persons approved it: %s", a.ApprovalID, len(a.Consents), a.Needed(), strings.Join(a.Consenting(), ", "))
	case a.Always != "":
		told += "; from now on: " + a.Always
	}
	return told
}

func policySays(p *judge.Policy, told, op string) string {
	if _, verb, _ := strings.Cut(op, " "); p.Status != judge.PolicyActive && (verb == "activate" || verb == "restore") {
		return "you are the first of two: another person must " + verb + " policy " + p.PolicyID + " too"
	}
	return told
}

// hostSays names who still has a place on a host that is drained.
func hostSays(h *host.Status, told, op string) string {
	about := h.Reason
	if op == "host drain" {
		about = h.Remains()
	}
	if about != "" {
		told += ": " + about
	}
	return told
}

// WorkflowSays tells how far a workflow is, too.
func WorkflowSays(w *cad.Workflow, told, _ string) string {
	switch {
	case w.Waits != "":
		told += " (waits for " + w.Waits + ")"
	case w.State.Final() && w.Cancelled == "":
		told += " (" + w.Shown() + ")"
	}
	return told
}
