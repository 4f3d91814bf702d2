package pane

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"swarmdeck/engine/cad"
	"swarmdeck/engine/core"
	"swarmdeck/engine/estop"
	"swarmdeck/engine/fleet"
	"swarmdeck/engine/judge"
	"swarmdeck/engine/session"
	"swarmdeck/engine/skill"
	"swarmdeck/engine/task"
	"swarmdeck/ui/screen"
	"swarmdeck/ui/term"
)

// State is a sign, a word and a role: colour never stands alone.
type State struct {
	screen.State
	Word string
}

// Label is the sign and the word.
func (s State) Label(g *screen.Glyphs) string { return s.Glyph(g) + " " + s.Word }

// Cell is the label and its colour.
func (s State) Cell(env *Env) (string, screen.Role) { return s.Label(env.Glyphs), s.Role() }

// Frozen reports whether the emergency stop has stopped a task's work: it is
// on, and neither the task nor its agent is among those that have not
// acknowledged it.
func Frozen(stop *estop.State, task, agent string) bool {
	return stop.On && !slices.Contains(stop.Waiting, task) && !slices.Contains(stop.Waiting, agent)
}

// TaskState is the task's status, or what it waits for.
func TaskState(env *Env, t *task.Task) State {
	switch {
	case t.RetriedAs != "":
		return State{screen.StateOf(string(task.Cancelled)), "retried"}
	case t.Status.Terminal():
	case t.Status == task.Running && Frozen(&env.Snap.EStop, t.TaskID, t.Agent):
		return State{screen.Paused, "frozen"}
	case t.Waiting != "":
		return State{screen.Waiting, "needs you"}
	case t.Paused:
		return State{screen.Paused, "paused"}
	}
	return StatusState(t.Status)
}

// StatusState is a task's bare status.
func StatusState(s task.Status) State {
	return State{screen.StateOf(string(s)), strings.ReplaceAll(string(s), "_", " ")}
}

// AgentState is the common word for any runtime's status.
func AgentState(env *Env, a *fleet.Agent) State {
	if Asking(env, a) != nil {
		return workerState("waiting for you", false)
	}
	return workerState(a.State(), a.TaskID != "" && Frozen(&env.Snap.EStop, a.TaskID, a.Name))
}

// SubagentState is the common word for a subagent's state.
func SubagentState(env *Env, a *skill.Subagent) State {
	return workerState(a.Shown(), Frozen(&env.Snap.EStop, a.TaskID, a.AgentID))
}

// CADAgentState is the common word for a CAD agent's state.
func CADAgentState(a *cad.Agent) State { return workerState(a.Shown(), false) }

// workerState is what is shown of the word that all who work have for how they are.
func workerState(word string, frozen bool) State {
	switch {
	case word == "waiting for you":
		return State{screen.Waiting, "needs you"}
	case word == "stuck":
		return State{screen.Waiting, word}
	case word == "working" && frozen:
		return State{screen.Paused, "frozen"}
	}
	return State{screen.StateOf(word), word}
}

// SubagentWhy is what a subagent waits for, or what it failed of.
func SubagentWhy(env *Env, a *skill.Subagent) (string, screen.Role) {
	if a.Waiting == "" {
		return a.Error, screen.Bad
	}
	return "asks: " + Asked(env, a.Waiting), screen.Warn
}

// ExecutionState is how far one run of a skill is.
func ExecutionState(e *skill.Execution) State {
	switch {
	case e.Broken():
		return State{screen.Cancelled, "interrupted"}
	case e.Status == skill.StatusPending:
		return State{screen.Working, "running"}
	}
	return State{screen.StateOf(string(e.Status)), string(e.Status)}
}

// SessionState shows "pausing" until every part has acknowledged.
func SessionState(s *session.Session) State {
	word := s.Shown()
	return State{screen.StateOf(word), word}
}

// ApprovalState is where an approval stands.
func ApprovalState(a *judge.Approval) State {
	word := string(a.Status)
	if a.Status == judge.Open && !a.DeferredUntil.IsZero() {
		word = "deferred"
	}
	return State{screen.StateOf(word), word}
}

// RiskRole colours a risk; the word is always drawn too.
func RiskRole(r judge.Risk) screen.Role {
	switch r {
	case judge.Critical, judge.High:
		return screen.Danger
	case judge.Medium:
		return screen.Warn
	}
	return screen.Good
}

// HighRisk reports whether approving needs the whole card seen and a reason.
func HighRisk(r judge.Risk) bool { return r != judge.Low && r != judge.Medium }

// Pretty indents JSON for reading; what is no JSON comes back as it is. Keys
// keep their order and strings their exact characters.
func Pretty(raw core.Raw) string {
	if len(raw) == 0 {
		return ""
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}

// DecisionState is a decision's answer.
func DecisionState(d *judge.GateDecision) State {
	switch d.Decision {
	case judge.HITL:
		return State{screen.Waiting, "ask"}
	case judge.Deny:
		if d.Abort {
			return State{screen.Failure, "abort"}
		}
	}
	return State{screen.StateOf(string(d.Decision)), string(d.Decision)}
}

// Asks is what an agent waits for a person to allow, "" for nothing.
func Asks(env *Env, a *fleet.Agent) string {
	if a.Waiting == "" {
		return ""
	}
	return Asked(env, a.Waiting)
}

// Asked is what an open approval is about, else its id.
func Asked(env *Env, id string) string {
	for _, ask := range env.Snap.Approvals {
		if ask.ApprovalID == id {
			return Headline(ask)
		}
	}
	return id
}

// Headline is one line of what an approval is about, as the engine reads it in the
// action: no agent words it. Hidden characters are spelled out.
func Headline(a *judge.Approval) string {
	return term.Reveal(cmp.Or(a.Subject.Headline, a.Action.Tool, a.Action.Kind, string(a.Gate)))
}

// OptionText is one way to answer a question on one line: what it is called, by who
// asks, and its id.
func OptionText(o judge.Option) string {
	return term.Reveal(strings.TrimSpace(strings.Join(strings.Fields(o.Label), " ") + " (" + o.ID + ")"))
}

// During are lines about what a connection may be part of; none of what is no
// connection of an agent's.
func During(a *judge.Approval) (lines []string) {
	if a.Gate != judge.GateNet {
		return nil
	}
	for _, d := range a.During {
		lines = append(lines, d.String())
	}
	if len(lines) == 0 && a.Driver != "" {
		lines = []string{"none that the agent tells of"}
	}
	return lines
}

// Asking is an open question about what an agent does that it does not wait for itself:
// a connection of its task, or whether a task goes to it. nil is none.
func Asking(env *Env, a *fleet.Agent) *judge.Approval {
	for _, ask := range env.Snap.Approvals {
		if ask.Gate == judge.GateStart && ask.Agent.Name == a.Name || ask.Gate == judge.GateNet && a.TaskID != "" && ask.TaskID == a.TaskID {
			return ask
		}
	}
	return nil
}

// openProfile is that of agents which nothing holds back.
const openProfile = "open"

// OpenMeans says what it is to be open.
const OpenMeans = "reaches all that the engine's user reaches, its keys and the network among it"

// Profile is how much of the machine an agent reaches, in a word; nobody is to
// overlook one that reaches all.
func Profile(profile string) (word string, role screen.Role) {
	if profile == openProfile {
		return "OPEN", screen.Danger
	}
	return profile, screen.Dim
}
